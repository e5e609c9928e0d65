"""The service's health: how late the queues are, which providers are paused, what waits for a person."""

import sys
from collections import Counter
from datetime import datetime

from payagg import __version__
from payagg.application.payments.refused_events import RefusedEvents
from payagg.application.payments.status_checks import Reconciler
from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.schemas.health import (
    PausedProvider,
    RefusedEventCount,
    ServiceHealth,
    ServiceVersions,
    UnclosedAnomalies,
)
from payagg.domain.anomaly import AnomalyKind


async def service_health(
    store: Store, clock: Clock, reconciler: Reconciler, refused_events: RefusedEvents
) -> ServiceHealth:
    now = clock.now()
    async with store.begin() as tx:
        unclosed = Counter[AnomalyKind]()
        for (kind, _), count in (await tx.anomalies.count_open()).items():
            unclosed[kind] += count
        providers = await tx.health.all()
    refused = Counter((one.provider, one.environment, one.fault) for one in await refused_events.recent())
    postgres, migration = await store.versions()
    return ServiceHealth(
        deliveries_oldest_due_seconds=_age(now, await store.queue.oldest_due(now)),
        payments_oldest_unasked_seconds=_age(now, await reconciler.oldest_unasked()),
        webhook_endpoints_deactivated=await store.queue.count_deactivated(),
        paused_providers=[
            PausedProvider(one.gateway, one.environment, _age(one.open_until, now))
            for one in providers
            if one.open_until is not None and one.is_open(now)
        ],
        unclosed_anomalies=[UnclosedAnomalies(kind, count) for kind, count in unclosed.items()],
        refused_events=[RefusedEventCount(*event, count) for event, count in refused.most_common()],
        versions=ServiceVersions(__version__, sys.version, postgres, migration),
    )


def _age(now: datetime, since: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0
