"""Wipes secrets kept for settlement alone: those of deleted gateways, and replaced signing secrets."""

from dataclasses import dataclass
from datetime import datetime

import structlog

from payagg.application.accounts.audit import record
from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.ports.outside import Clock, Entropy
from payagg.application.ports.store import Store, Transaction
from payagg.application.retry import retry_on_conflict
from payagg.domain.audit import Action, changes_of, clock
from payagg.domain.gateway import PROVES_FOR, Gateway

_log = structlog.get_logger("payagg.gateway_settling")


@dataclass(frozen=True)
class CredentialRetirement:
    store: Store
    clock: Clock
    entropy: Entropy
    sealed: GatewayCredentials

    @retry_on_conflict
    async def wipe(self) -> int:
        """Wipes secrets past their end; the number of gateways changed. For the worker."""
        now = self.clock.now()
        wiped = 0
        async with self.store.begin() as tx:
            for gateway in await tx.gateways.to_wipe(now):
                is_open = await tx.attempts.count_open(gateway.id, 1) > 0
                changed = gateway.without_secrets(now, is_open)
                if gateway.has_credentials and not changed.has_credentials:
                    if now < gateway.updated_at + PROVES_FOR and not self.sealed.are_open(gateway):
                        continue
                    changed = self.sealed.retire(gateway, now)
                if changed is not gateway:
                    await self._wipe(tx, gateway, changed, now, has_open_attempts=is_open)
                    wiped += 1
        return wiped

    async def _wipe(
        self, tx: Transaction, before: Gateway, after: Gateway, now: datetime, *, has_open_attempts: bool
    ) -> None:
        """The one place where the clock ends secrets."""
        await tx.gateways.save(after)
        changes = changes_of(before, after, "has_credentials", "replaced_secrets_until")
        await record(tx, self.entropy, now, clock("settling"), Action.GATEWAY_WIPE_SECRETS, after.id, changes)
        _log.info(
            "gateway secrets wiped",
            gateway_id=after.id,
            slug=after.slug,
            what="credentials" if before.has_credentials and not after.has_credentials else "replaced signing secrets",
            has_open_attempts=has_open_attempts,
        )
