"""The end of secrets that only settle: those of deleted gateways, and signing secrets that were replaced."""

from dataclasses import dataclass

import structlog

from payagg.application.ports import Clock, Store, Transaction
from payagg.application.retry import retried
from payagg.domain.gateway import Gateway

_log = structlog.get_logger("payagg.gateway_settling")


@dataclass(frozen=True)
class GatewaySettling:
    store: Store
    clock: Clock

    @retried
    async def wipe(self) -> int:
        """Forgets the secrets that have served; how many gateways lost some. For the worker."""
        now = self.clock.now()
        wiped = 0
        async with self.store.begin() as tx:
            for gateway in await tx.gateways.to_wipe(now):
                is_open = await tx.payments.has_open_attempts(gateway.id)
                changed = gateway.wiped(now, is_open)
                if changed is not gateway:
                    await self._wipe(tx, changed, has_open_attempts=is_open)
                    wiped += 1
        return wiped

    async def _wipe(self, tx: Transaction, gateway: Gateway, *, has_open_attempts: bool) -> None:
        """The one place where secrets end by the clock, for whoever keeps a record of it."""
        await tx.gateways.save(gateway)
        _log.info(
            "gateway secrets wiped",
            gateway_id=gateway.id,
            slug=gateway.slug,
            what="replaced signing secrets" if gateway.has_credentials else "all",
            has_open_attempts=has_open_attempts,
        )
