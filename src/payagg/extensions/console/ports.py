"""The console's sessions, and their port."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from payagg.application.ports.store import Repository
from payagg.domain.audit import ActorRealm

SESSION_MAX = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)  # a request is recorded at most this often


@dataclass(frozen=True)
class ConsoleSession:
    """`session` is the SHA-256 of its form token; `address` is that of its last request."""

    session: bytes
    realm: ActorRealm
    subject: str
    address: str | None
    started_at: datetime
    seen_at: datetime
    ends_at: datetime

    def is_over(self, now: datetime, idle: timedelta) -> bool:
        return now >= min(self.ends_at, self.seen_at + idle)

    def is_seen_stale(self, now: datetime) -> bool:
        return now - self.seen_at >= SEEN_EVERY


class ConsoleSessionRepository(Protocol):
    async def add(self, session: ConsoleSession) -> None: ...

    async def find(self, session: bytes) -> ConsoleSession | None:
        """By its digest."""

    async def touch(self, session: ConsoleSession) -> None:
        """Saves `seen_at` and `address`, unless the session ended or was seen later."""

    async def of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        """The user's sessions, newest first, at most 100."""

    async def end(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        """Removes the session of that digest if it is the user's."""

    async def end_others(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        """Removes all of the user's sessions except that one."""

    async def forget(self, now: datetime) -> None:
        """Removes a batch of expired sessions."""


SESSIONS: Repository[ConsoleSessionRepository] = Repository(
    "payagg.extensions.console.postgres:PostgresConsoleSessions"
)
