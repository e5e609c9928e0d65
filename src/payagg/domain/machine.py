"""A state machine as data: one table that code, tests, database triggers and docs/states.md all read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Generic, TypeVar

from payagg.domain.errors import ErrorCode, Refusal

S = TypeVar("S", bound=Enum)
T = TypeVar("T", bound=Enum)


@dataclass(frozen=True)
class Machine(Generic[S, T]):
    """`moves` says where a trigger leads; a pair that is absent is refused with the trigger's code."""

    name: str
    states: type[S]
    triggers: type[T]
    initial: S
    moves: Mapping[tuple[S, T], S]
    refusals: Mapping[T, ErrorCode]
    final: frozenset[S] = field(init=False)

    def __post_init__(self) -> None:
        leaving = {state for (state, _), target in self.moves.items() if target is not state}
        object.__setattr__(self, "final", frozenset(self.states) - leaving)

    def next(self, state: S, trigger: T) -> S:
        """The state after `trigger`; raises Refusal where the table holds no move."""
        try:
            return self.moves[state, trigger]
        except KeyError:
            raise Refusal(self.refusals[trigger]) from None

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Every (from, to) the table allows, for the database's trigger; staying put is always allowed there."""
        return sorted({(a.value, b.value) for (a, _), b in self.moves.items() if a is not b})

    def as_mermaid(self) -> str:
        """The table as a mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.value}"]
        lines += [f"    {a.value} --> {b.value}: {t.value}" for (a, t), b in self.moves.items()]
        lines += [f"    {s.value} --> [*]" for s in self.states if s in self.final]
        return "\n".join(lines)
