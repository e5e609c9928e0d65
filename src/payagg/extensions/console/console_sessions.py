"""Console sessions: start, use, list, end. Each is a row; a session without a row is refused. And the issuer that
signs people in."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.use_case import in_transaction, retry_on_conflict
from payagg.domain.audit import ActorRealm
from payagg.entrypoints.bootstrap import Services
from payagg.extensions.console.domain import SESSION_IDLE, ConsoleSession
from payagg.extensions.console.openid import OpenIdIssuer
from payagg.extensions.console.postgres import SessionRows
from payagg.extensions.console.settings import ConsoleSettings


@dataclass(frozen=True)
class ConsoleSessions:
    """A session ends after `idle` without a request. Its token is not revoked: the token is the issuer's, and may be in
    use elsewhere. A row holds nothing that signs anybody in."""

    store: Store
    clock: Clock
    idle: timedelta = SESSION_IDLE

    @retry_on_conflict
    async def begin(
        self, form_token: str, realm: ActorRealm, subject: str, address: str | None, ends_at: datetime
    ) -> None:
        now = self.clock.now()
        async with self.store.begin() as tx:
            await tx.of(SessionRows).forget(now)
            await tx.of(SessionRows).add(ConsoleSession(digest(form_token), realm, subject, address, now, now, ends_at))

    async def see(self, form_token: str, address: str | None) -> bool:
        """Records a request of the session; False when the session has ended, in every process from that moment."""
        now, session = self.clock.now(), digest(form_token)
        found = await in_transaction(self.store, lambda tx: tx.of(SessionRows).find(session))
        if found is None or found.is_over(now, self.idle):
            return False
        if found.is_seen_stale(now):
            seen = replace(found, seen_at=now, address=address)
            await in_transaction(self.store, lambda tx: tx.of(SessionRows).touch(seen))
        return True

    async def of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        """The open ones, newest first."""
        now = self.clock.now()
        found = await in_transaction(self.store, lambda tx: tx.of(SessionRows).of(realm, subject))
        return [one for one in found if not one.is_over(now, self.idle)]

    async def end(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        """Ends the session: neither the cookie nor a copy of it is accepted. Another user's session is not changed."""
        await in_transaction(self.store, lambda tx: tx.of(SessionRows).end(realm, subject, session))

    async def end_others(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        await in_transaction(self.store, lambda tx: tx.of(SessionRows).end_others(realm, subject, session))


@dataclass(frozen=True)
class Console:
    """What the console keeps beyond the core's services."""

    sessions: ConsoleSessions
    issuer: OpenIdIssuer | None  # None: it takes bearer tokens


def console_over(core: Services) -> Console:
    settings = core.settings.of(ConsoleSettings)
    return Console(ConsoleSessions(core.store, core.clock), _issuer(settings, core.clock))


def _issuer(settings: ConsoleSettings, clock: Clock) -> OpenIdIssuer | None:
    """Makes no call."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None:
        return None
    claim = settings.oidc_roles[0] if settings.oidc_roles else None
    return OpenIdIssuer(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret, claim, clock)


def digest(form_token: str) -> bytes:
    """The form token identifies the session; no two share one."""
    return hashlib.sha256(form_token.encode()).digest()
