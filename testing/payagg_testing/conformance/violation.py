"""A counterexample: told as a story, and as a program that does it again."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from payagg_testing.conformance import replay
from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.story import Step, Story

SHOWN_MAX = 600  # characters of a request or an answer
_VALUE = re.compile(r'"[^"]*"|\[.*\]|\d+')  # of a fault
SHORT = 5  # characters of a value that may stand within another one by chance


class Violation(AssertionError):
    """A history in which the service broke the interface; as text, the story."""

    def __init__(self, story: Story, fault: str, is_replayed: bool = False, assumption: str | None = None) -> None:
        """`assumption`: what it contradicts is payagg's own choice, and no part of the interface."""
        super().__init__(fault)
        self.assumption = assumption
        self.story, self.fault, self.is_replayed = story, fault, is_replayed

    @property
    def headline(self) -> str:
        """What was done, and what came of it."""
        return self.story.mask(f"{self.story.steps[-1].text}: {self.fault}" if self.story.steps else self.fault)

    @property
    def kind(self) -> str:
        """Equal for violations that have one cause as far as can be told: the request and the fault without values."""
        calls = self.story.steps[-1].calls if self.story.steps else ()
        what = f"{calls[0].method} {calls[0].path.partition('?')[0]}" if calls else ""
        segments = ["_" if re.search(r"\d", segment) else segment for segment in what.split("/")]
        return f"{'/'.join(segments)}: {_VALUE.sub('_', self.fault)}"

    def __str__(self) -> str:
        return self.story.mask("\n".join(self._report_lines()))

    def _report_lines(self) -> Iterator[str]:
        yield f"{self.story.machine}: {self.fault}"
        if self.assumption is not None:
            yield f"The interface does not say that {self.assumption}."
        steps, number = self.story.steps, 1
        while number <= len(steps):
            looks = self._looks_from(number)
            if looks > 1:
                yield f"{number} to {number + looks - 1}. {looks} looks at what is there, all as expected"
                number += looks
            else:
                yield from self._told_step(number, steps[number - 1])
                number += 1

    def _looks_from(self, number: int) -> int:
        """How many steps in a row, from this one on, only read; the last step of all is told whatever it is."""
        before_last = self.story.steps[number - 1 : -1]
        others = (place for place, step in enumerate(before_last) if not step.is_look)
        return next(others, len(before_last))

    def _told_step(self, number: int, step: Step) -> Iterator[str]:
        yield f"{number}. {step.text}"
        is_last = number == len(self.story.steps)
        if is_last and not step.calls:
            yield f"   came:     {self.fault}"
        if step.calls:
            times = f"{len(step.calls)} times at once: " if step.same else ""
            yield f"   {times}{_request(step.calls[0])}"
            if not is_last:
                yield f"   {', '.join(str(answer.status) for answer in step.answers)}, as expected"
            else:
                yield f"   expected: {_foreseen(step)}"
                yield f"   came:     {'; '.join(str(answer)[:SHOWN_MAX] for answer in step.answers)}"

    def script(self) -> str:
        """A program that needs httpx alone, and payagg_testing where webhooks are received. It reads what it needs from
        the environment. Its exit status is 1 when the service still does it, 0 when it does not, and 3 where only the
        search could tell: then it shows what came."""
        return _Script(self).text()


def _foreseen(step: Step) -> str:
    return str(step.expected) if step.expected else f"{', '.join(map(str, step.statuses))} with one {step.same}"


def _request(call: ServiceCall) -> str:
    shown = [call.method, call.path]
    if call.body is not None:
        shown.append(json.dumps(call.body, ensure_ascii=False))
    if call.content is not None and call.event is None:
        shown.append(f"({len(call.content)} bytes of {call.headers.get('Content-Type', 'something')})")
    elif call.content is not None:
        shown.append(call.content.decode(errors="replace"))
    return " ".join(shown)[:SHOWN_MAX]


class _Script:
    """Python for a story: values that differ from run to run are replaced by the script's own."""

    def __init__(self, violation: Violation) -> None:
        self._violation, self._story = violation, violation.story
        story = self._story
        known = sorted(story.known, key=len, reverse=True)
        self._known = re.compile("(" + "|".join(map(_found_in_texts, known)) + ")")

    def text(self) -> str:
        title = f"{self._story.machine}: {self._violation.fault}"
        lines = [line for number, step in enumerate(self._story.steps, 1) for line in self._lines(number, step)]
        parts = [
            part
            for word, part in _PARTS.items()
            if any(f"{word}." in line or f"({word}," in line or f" {word}," in line for line in lines)
        ]
        played = self._story.provider
        head = _HEAD.format(
            title=self._story.mask(title).replace("\\", "/").replace('"""', "'''"),
            variables=" ".join(f"{name}=..." for name in ["BASE_URL", *self._story.variables]),
            imports="".join(imports for imports, _ in parts).replace("PLAYED", played),
            parts="".join(made for _, made in parts).replace("PLAYED", played),
            source=inspect.getsource(replay).partition('"""\n\n')[2],
        )
        last = len(self._story.steps)
        if not self._violation.is_replayed and self._story.steps[-1].calls:
            lines.append(f"look_yourself({last}, {self._story.mask(self._violation.fault)!r}, a{last})")
        return head + "\n".join(lines) + '\nprint("The service keeps the interface here.")\n'

    def _lines(self, number: int, step: Step) -> Iterator[str]:
        yield f"# {number}. {self._story.mask(step.text)}"
        if step.line:
            yield step.line.format(*map(self.expression, step.values))
        elif step.events is not None:
            yield f"expect_events({number}, inbox, {', '.join(map(self.expression, step.events))})"
        elif step.expected is not None:
            expected = step.expected
            yield f"a{number} = call({self._call(step.calls[0])})"
            checks = [(path, check.relation, check.value) for path, check in expected.checks]
            code = f", code={expected.code!r}" if expected.code else ""
            code += f", field={expected.field!r}" if expected.field else ""
            more = f", checks={self.expression(checks)}" if checks else ""
            if expected.file is not None:
                more += f", file=unpack({replay.pack(expected.file)!r})"
            if expected.header_checks:
                shown = [(name, check.relation, check.value) for name, check in expected.header_checks]
                more += f", shown={self.expression(shown)}"
            yield f"expect({number}, a{number}, {expected.statuses!r}{code}{more})"
        else:
            yield f"a{number} = together([{', '.join(map(self._call, step.calls))}])"
            yield f"expect_together({number}, a{number}, {list(step.statuses)!r}, {step.same!r})"

    def expression(self, value: Any) -> str:
        if isinstance(value, str):
            pieces = [piece for piece in self._known.split(value) if piece]
            return " + ".join(self._story.known.get(piece) or repr(piece) for piece in pieces) or "''"
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{name!r}: {self.expression(inner)}" for name, inner in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(self.expression, value)) + "]"
        return repr(value)

    def _call(self, call: ServiceCall) -> str:
        fields = [f"method={call.method!r}", f"path={self.expression(call.path)}"]
        more = {"bearer": call.bearer, "body": call.body}
        fields += [f"{name}={self.expression(value)}" for name, value in more.items() if value is not None]
        if call.event is not None:
            fields.append(f"**event_request(provider, {', '.join(map(self.expression, call.event))})")
        elif call.content is not None:
            fields.append(f"content=unpack({replay.pack(call.content)!r}), headers={dict(call.headers)!r}")
        return f"dict({', '.join(fields)})"


# What a script needs beside httpx, by the word that its lines use: imports, and how it is made.
_PARTS = {
    "inbox": (
        "from payagg_testing.conformance.events import expect_events\n"
        "from payagg_testing.conformance.inbox import Inbox\n",
        "inbox = Inbox.serve()\n",
    ),
    "provider": (
        "from payagg_testing.conformance.provider import PLAYED, event_request, expect_arrival, expect_charge\n",
        "provider = PLAYED()\n",
    ),
}
_HEAD = '''"""{title}

Run it with: {variables} python replay.py
"""

import secrets
import time
{imports}{source}
nonce = secrets.token_hex(4)
{parts}
'''


def _found_in_texts(value: str) -> str:
    """The pattern of a value that a service gave. A short one, as the id `gw-3`, is no part of `gw-33`."""
    return re.escape(value) if len(value) > SHORT else rf"(?<![\w-]){re.escape(value)}(?![\w-])"
