"""The service's health as one answer: how late the queues are, which providers are paused, what waits for a person."""

from datetime import datetime

from payagg.application.payments.status_checks import Reconciler
from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.schemas.health import PausedProvider, ServiceHealth, UnclosedAnomalies


async def service_health(store: Store, clock: Clock, reconciler: Reconciler) -> ServiceHealth:
    now = clock.now()
    async with store.begin() as tx:
        unclosed = await tx.anomalies.unclosed()
        providers = await tx.health.all()
    return ServiceHealth(
        deliveries_oldest_due_seconds=_age(now, await store.queue.oldest_due(now)),
        payments_oldest_unasked_seconds=_age(now, await reconciler.oldest_unasked()),
        webhook_endpoints_deactivated=await store.queue.deactivated(),
        paused_providers=[
            PausedProvider(one.gateway, one.environment, _age(one.open_until, now))
            for one in providers
            if one.open_until is not None and one.is_open(now)
        ],
        unclosed_anomalies=[UnclosedAnomalies(kind, count) for kind, count in unclosed.items() if count],
    )


def _age(now: datetime, since: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0
