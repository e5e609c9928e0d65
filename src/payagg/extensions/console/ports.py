"""The console's ports: the OpenID Connect issuer of its sign-in, and its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from payagg.application.ports.store import Repository
from payagg.domain.audit import ActorRealm

SESSION_MAX = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)  # a request is recorded at most this often


class IssuerAway(Exception):
    """The issuer cannot be reached, or breaks the protocol; the message holds none of its content."""


class SignInRefused(Exception):
    """The issuer refuses the sign-in, or its ID token is invalid."""


@dataclass(frozen=True)
class SignInFlow:
    """Binds the issuer's answer to the browser that began the sign-in: drawn for one sign-in, `verifier` of 43 or more
    characters (RFC 7636, 4.1)."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class SignInIssuer(Protocol):
    @property
    def host(self) -> str:
        """The issuer's name for people."""

    async def page(self, flow: SignInFlow, redirect_uri: str) -> str:
        """Where the browser goes to sign in; raises IssuerAway."""

    async def claims(self, code: str, flow: SignInFlow, redirect_uri: str) -> Mapping[str, Any]:
        """The claims of the user, with a text `sub`; raises IssuerAway or SignInRefused."""


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
    postgres="payagg.extensions.console.postgres:PostgresConsoleSessions",
    memory="payagg.extensions.console.memory:MemoryConsoleSessions",
)
