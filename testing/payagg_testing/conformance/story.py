"""What happened in one history of a machine, written down while it happens."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self

from payagg_testing.conformance.expectation import Expected
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall

SECRET = ("secretKey", "signingSecret")  # fields of answers


@dataclass(frozen=True)
class Step:
    """One thing that somebody did. Requests have answers, and `expected`; several at once have `same` instead, the path
    of what must be one value in all of them."""

    text: str
    calls: Sequence[ServiceCall] = ()
    answers: Sequence[ServiceAnswer] = ()
    expected: Expected | None = None
    statuses: Sequence[int] = ()
    same: str = ""

    @property
    def is_look(self) -> bool:
        """Whether somebody only read, and found what was expected unless it is the last step."""
        return bool(self.calls) and all(call.method == "GET" for call in self.calls)


@dataclass
class Story:
    """`secrets` maps values to the words that hide them."""

    machine: str
    secrets: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def hide(self, value: str | None, words: str) -> None:
        if value:
            self.secrets.setdefault(value, f"<{words}>")

    def did(self, text: str, call: ServiceCall, answer: ServiceAnswer, expected: Expected) -> None:
        self.steps.append(Step(text, [call], [answer], expected))
        self._hide_secrets(answer.body)

    def did_together(
        self,
        text: str,
        calls: Sequence[ServiceCall],
        answers: Sequence[ServiceAnswer],
        statuses: Sequence[int],
        same: str,
    ) -> None:
        self.steps.append(Step(text, calls, answers, statuses=statuses, same=same))

    def add_wait(self, duration: timedelta) -> None:
        self.add_note(f"{duration.total_seconds():g} seconds pass")

    def add_note(self, text: str) -> None:
        """Something that is no request of the service."""
        self.steps.append(Step(text))

    def mask(self, text: str) -> str:
        for value in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(value, self.secrets[value])
        return text

    def copy(self) -> Self:
        """As it is now: a history goes on for a moment after it failed, to clean up."""
        return replace(self, secrets=dict(self.secrets), steps=list(self.steps))

    def _hide_secrets(self, node: Any) -> None:
        if isinstance(node, dict):
            for name, value in node.items():
                if name in SECRET and isinstance(value, str):
                    self.hide(value, f"{name} of step {len(self.steps)}")
                else:
                    self._hide_secrets(value)
        elif isinstance(node, list):
            for value in node:
                self._hide_secrets(value)
