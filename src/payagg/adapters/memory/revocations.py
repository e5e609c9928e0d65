"""Revoked tokens in memory."""

from payagg.adapters.memory.state import MemoryRepository
from payagg.domain.revocation import Revocation


class MemoryRevocations(MemoryRepository):
    async def add(self, revocation: Revocation) -> None:
        key = (revocation.claim, revocation.value)
        before = self.state.revocations.get(key, revocation)
        self.state.revocations[key] = max(before, revocation, key=lambda one: one.issued_before)
