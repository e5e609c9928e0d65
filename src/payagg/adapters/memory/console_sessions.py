"""Console sessions in memory."""

from dataclasses import dataclass, replace
from datetime import datetime

from payagg.adapters.memory.state import State
from payagg.domain.audit import ActorRealm
from payagg.domain.console_session import ConsoleSession


@dataclass(frozen=True)
class MemoryConsoleSessions:
    state: State

    async def add(self, session: ConsoleSession) -> None:
        self.state.console_sessions[session.session] = session

    async def save(self, session: ConsoleSession) -> None:
        kept = self.state.console_sessions.get(session.session)
        if kept is not None and kept.seen_at < session.seen_at:
            changed = replace(kept, seen_at=session.seen_at, address=session.address)
            self.state.console_sessions[session.session] = changed

    async def of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        return sorted(self._of(realm, subject), key=lambda one: one.started_at, reverse=True)

    async def end(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        self._remove([one for one in self._of(realm, subject) if one.session == session])

    async def end_others(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        self._remove([one for one in self._of(realm, subject) if one.session != session])

    async def forget(self, now: datetime) -> None:
        self._remove([one for one in self.state.console_sessions.values() if one.ends_at <= now])

    def _of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        return [one for one in self.state.console_sessions.values() if (one.realm, one.subject) == (realm, subject)]

    def _remove(self, sessions: list[ConsoleSession]) -> None:
        for one in sessions:
            del self.state.console_sessions[one.session]
