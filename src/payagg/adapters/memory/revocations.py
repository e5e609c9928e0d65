"""Revoked tokens in memory."""

from dataclasses import dataclass
from datetime import datetime

from payagg.adapters.memory.state import State
from payagg.domain.revocation import Revocation, RevokedClaim


@dataclass(frozen=True)
class MemoryRevocations:
    state: State

    async def add(self, revocation: Revocation) -> None:
        key = (revocation.claim, revocation.value)
        before = self.state.revocations.get(key, revocation)
        self.state.revocations[key] = max(before, revocation, key=lambda one: one.issued_before)

    async def forget(self, before: datetime, limit: int) -> int:
        rows = self.state.revocations.items()
        old = [key for key, one in rows if one.claim is RevokedClaim.TOKEN and one.issued_before < before][:limit]
        for key in old:
            del self.state.revocations[key]
        return len(old)
