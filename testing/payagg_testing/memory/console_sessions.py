"""Console sessions in memory."""

from dataclasses import replace
from datetime import datetime

from payagg.domain.audit import ActorRealm
from payagg.extensions.console.domain import ConsoleSession
from payagg_testing.memory.state import MemoryRepository

TABLE = "console_sessions"


class MemoryConsoleSessions(MemoryRepository):
    async def add(self, session: ConsoleSession) -> None:
        self.state.of_extensions[TABLE, session.session] = session

    async def find(self, session: bytes) -> ConsoleSession | None:
        return self.state.of_extensions.get((TABLE, session))

    async def touch(self, session: ConsoleSession) -> None:
        kept = await self.find(session.session)
        if kept is not None and kept.seen_at < session.seen_at:
            await self.add(replace(kept, seen_at=session.seen_at, address=session.address))

    async def of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        return sorted(self._of(realm, subject), key=lambda one: one.started_at, reverse=True)

    async def end(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        self._remove([one for one in self._of(realm, subject) if one.session == session])

    async def end_others(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        self._remove([one for one in self._of(realm, subject) if one.session != session])

    async def forget(self, now: datetime) -> None:
        self._remove([one for one in self._all() if one.ends_at <= now])

    def _all(self) -> list[ConsoleSession]:
        return [row for (table, _), row in self.state.of_extensions.items() if table == TABLE]

    def _of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        return [one for one in self._all() if (one.realm, one.subject) == (realm, subject)]

    def _remove(self, sessions: list[ConsoleSession]) -> None:
        for one in sessions:
            del self.state.of_extensions[TABLE, one.session]
