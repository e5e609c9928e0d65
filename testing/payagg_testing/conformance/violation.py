"""A counterexample, told as a story."""

import json
import re
from collections.abc import Iterator

from payagg_testing.conformance.service import ServiceCall
from payagg_testing.conformance.story import Step, Story

SHOWN_MAX = 600  # characters of a request or an answer
_VALUE = re.compile(r'"[^"]*"|\[.*\]|\d+')  # of a fault


class Violation(AssertionError):
    """A history in which the service broke the interface; as text, the story."""

    def __init__(self, story: Story, fault: str, assumption: str | None = None) -> None:
        """`assumption`: what it contradicts is payagg's own choice, and no part of the interface."""
        super().__init__(fault)
        self.story, self.fault, self.assumption = story, fault, assumption

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


def _foreseen(step: Step) -> str:
    return str(step.expected) if step.expected else f"{', '.join(map(str, step.statuses))} with one {step.same}"


def _request(call: ServiceCall) -> str:
    shown = [call.method, call.path]
    if call.body is not None:
        shown.append(json.dumps(call.body, ensure_ascii=False))
    if call.content is not None:
        shown.append(call.content.decode(errors="replace"))
    return " ".join(shown)[:SHOWN_MAX]
