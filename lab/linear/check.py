"""Linearizability of one small history: a search of Wing and Gong with Lowe's memo.

A history is linearizable when every call can be given one instant between its beginning and its end, so that the calls
in the order of these instants are what a sequential model does. A call without an answer may have taken effect at any
instant after its beginning, or never.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Operation:
    """A call with what was asked and told. `began` and `ended` are of one clock; `told` is None where nobody knows
    whether it took effect."""

    call: str
    began: float
    ended: float = inf
    asked: Any = None
    told: Any = None

    @property
    def is_known(self) -> bool:
        return self.ended < inf


# The states after an operation in a state, none where its answer cannot be; of one without an answer every state.
Model = Callable[[State, Operation], Iterable[State]]


def longest_order(history: Sequence[Operation], start: State, model: Model[State]) -> tuple[bool, list[Operation]]:
    """Whether some order explains every answer, and the longest order found that a model can do."""
    calls = sorted(history, key=lambda one: one.began)
    wanted = sum(1 << number for number, call in enumerate(calls) if call.is_known)
    left: list[tuple[State, int, tuple[int, ...]]] = [(start, 0, ())]
    seen, best = {(start, 0)}, left[0]
    while left:
        state, done, order = left.pop()
        if len(order) > len(best[2]):
            best = state, done, order
        if done & wanted == wanted:
            return True, [calls[number] for number in order]
        for number in _next(calls, done):
            for after in model(state, calls[number]):
                # Without an answer and without an effect: as if it never was.
                if not calls[number].is_known and after == state:
                    continue
                reached = after, done | 1 << number
                if reached not in seen:
                    seen.add(reached)
                    left.append((*reached, (*order, number)))
    return False, [calls[number] for number in best[2]]


def _next(calls: Sequence[Operation], done: int) -> list[int]:
    """Those that may come first of what is not done: they began before any other ended. The last is the most likely:
    what had an answer first."""
    found, first_end = list[int](), inf
    for number, call in enumerate(calls):
        if call.began > first_end:
            break
        if not done >> number & 1:
            found.append(number)
            first_end = min(first_end, call.ended)
    return sorted((n for n in found if calls[n].began <= first_end), key=lambda n: -calls[n].ended)
