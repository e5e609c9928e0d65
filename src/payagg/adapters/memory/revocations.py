"""Revoked tokens in memory."""

from dataclasses import dataclass
from datetime import datetime

from payagg.adapters.memory.state import State
from payagg.domain.revocation import Revocation


@dataclass(frozen=True)
class MemoryRevocations:
    state: State

    async def add(self, revocation: Revocation) -> None:
        key = (revocation.claim, revocation.value)
        before = self.state.revocations.get(key, revocation)
        self.state.revocations[key] = max(before, revocation, key=lambda one: one.issued_before)

    async def end_session(self, session: bytes, ends_at: datetime, now: datetime) -> None:
        for over in [one for one, end in self.state.ended_sessions.items() if end <= now]:
            del self.state.ended_sessions[over]
        self.state.ended_sessions[session] = ends_at
