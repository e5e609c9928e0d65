"""What happened in one history of a machine, written down while it happens."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self

from payagg_testing.conformance.expectation import Expected
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall

# Fields of answers that later requests repeat: a replay must take its own.
CARRIED = ("id", "reference", "publicKey", "secretKey", "signingSecret", "checkoutUrl", "expiresAt")
CARRIED_MIN = 3  # characters: what is shorter stands for other things, too
SECRET = ("secretKey", "signingSecret")
ROWS_MAX = 50  # of a list


@dataclass(frozen=True)
class Step:
    """One thing that somebody did. Requests have answers, and `expected`; several at once have `same` instead, the path
    of what must be one value in all of them. Anything else is a `line` of Python that does it again."""

    text: str
    calls: Sequence[ServiceCall] = ()
    answers: Sequence[ServiceAnswer] = ()
    expected: Expected | None = None
    statuses: Sequence[int] = ()
    same: str = ""
    line: str = ""  # with {} for each of `values`
    values: tuple[Any, ...] = ()
    events: tuple[Any, ...] | None = None

    @property
    def is_look(self) -> bool:
        """Whether somebody only read, and found what was expected unless it is the last step."""
        return bool(self.calls) and all(call.method == "GET" for call in self.calls)


@dataclass
class Story:
    """`known` maps values of this history to a script's expressions for its own; `secrets` to words that hide them."""

    machine: str
    known: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)  # of the environment that a script reads
    steps: list[Step] = field(default_factory=list)
    provider: str = ""  # the class of the one that is played

    def add_value(self, value: str | None, variable: str, words: str) -> None:
        """A value that whoever replays the history brings along; `words` hide it where it is a secret."""
        if value and value not in self.known:
            self.known[value] = f'os.environ["{variable}"]'
            self.variables.append(variable)
            if words:
                self.secrets[value] = f"<{words}>"

    def did(self, text: str, call: ServiceCall, answer: ServiceAnswer, expected: Expected) -> None:
        self.steps.append(Step(text, [call], [answer], expected))
        self._carry(answer.body, f"a{len(self.steps)}.json()")

    def did_together(
        self,
        text: str,
        calls: Sequence[ServiceCall],
        answers: Sequence[ServiceAnswer],
        statuses: Sequence[int],
        same: str,
    ) -> None:
        self.steps.append(Step(text, calls, answers, statuses=statuses, same=same))
        for place, answer in enumerate(answers):
            self._carry(answer.body, f"a{len(self.steps)}[{place}].json()")

    def add_wait(self, duration: timedelta) -> None:
        seconds = f"{duration.total_seconds():g}"
        self.steps.append(Step(f"{seconds} seconds pass", line=f"time.sleep({seconds})"))

    def add_note(self, text: str, line: str, *values: Any) -> None:
        """Something that is no request of the service; `line` does it in a script, with {} for each of `values`."""
        self.steps.append(Step(text, line=line, values=values))

    def expects_events(self, text: str, *arguments: Any) -> None:
        """The arguments of `expect_events` after the inbox."""
        self.steps.append(Step(text, events=arguments))

    def mask(self, text: str) -> str:
        for value in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(value, self.secrets[value])
        return text

    def copy(self) -> Self:
        """As it is now: a history goes on for a moment after it failed, to clean up."""
        return replace(self, known=dict(self.known), secrets=dict(self.secrets), steps=list(self.steps))

    def _carry(self, node: Any, place: str) -> None:
        """Remembers where an answer said what later requests repeat."""
        if isinstance(node, dict):
            for name, value in node.items():
                if name in CARRIED and isinstance(value, str) and len(value) >= CARRIED_MIN:
                    self.known.setdefault(value, f"{place}[{name!r}]")
                    if name in SECRET:
                        self.secrets.setdefault(value, f"<{name} of step {len(self.steps)}>")
                else:
                    self._carry(value, f"{place}[{name!r}]")
        elif isinstance(node, list):
            for index, value in enumerate(node[:ROWS_MAX]):
                self._carry(value, f"{place}[{index}]")
