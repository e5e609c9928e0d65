"""Revoked tokens in memory."""

from dataclasses import dataclass

from payagg.adapters.memory.state import State
from payagg.domain.revocation import Revocation


@dataclass(frozen=True)
class MemoryRevocations:
    state: State

    async def add(self, revocation: Revocation) -> None:
        key = (revocation.claim, revocation.value)
        before = self.state.revocations.get(key, revocation)
        self.state.revocations[key] = max(before, revocation, key=lambda one: one.issued_before)
