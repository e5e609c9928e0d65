"""The service's health, for administrators."""

import sys
from collections import Counter
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from payagg import __version__
from payagg.application.payments.refused_events import RefusedEvents
from payagg.application.payments.status_checks import Reconciler
from payagg.application.ports.outside import Clock
from payagg.application.ports.providers import SignatureFault
from payagg.application.ports.store import Store
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.values import Environment

Seconds = Annotated[float, Meta(ge=0, examples=[0.0])]


class UnclosedAnomalies(Struct, rename="camel", frozen=True):
    kind: AnomalyKind
    count: int


class PausedProvider(Struct, rename="camel", frozen=True):
    """A provider that failed several times in a row, and the seconds until its next call."""

    gateway: str
    environment: Environment
    seconds: Seconds


class RefusedEventCount(Struct, rename="camel", frozen=True):
    """The least number of a provider's events refused for their signature within a day, and the reason. Equal events
    count once, and at most fifty are distinguished."""

    provider: str
    environment: Environment
    fault: SignatureFault
    count: int


class ServiceVersions(Struct, rename="camel", frozen=True):
    """Versions: payagg, the answering process's Python and its build, Postgres, and the database's newest migration."""

    payagg: str
    python: str
    postgres: str
    migration: str


class ServiceHealth(Struct, rename="camel", frozen=True):
    """How late the queues are, zero when nothing waits, and what waits for a person."""

    deliveries_oldest_due_seconds: Seconds
    payments_oldest_unasked_seconds: Seconds
    webhook_endpoints_deactivated: int
    paused_providers: list[PausedProvider]
    unclosed_anomalies: list[UnclosedAnomalies]
    refused_events: list[RefusedEventCount]
    versions: ServiceVersions


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
        deliveries_oldest_due_seconds=age(now, await store.queue.oldest_due(now)),
        payments_oldest_unasked_seconds=age(now, await reconciler.oldest_unasked()),
        webhook_endpoints_deactivated=await store.queue.count_deactivated(),
        paused_providers=[
            PausedProvider(one.gateway, one.environment, age(one.open_until, now))
            for one in providers
            if one.open_until is not None and one.is_open(now)
        ],
        unclosed_anomalies=[UnclosedAnomalies(kind, count) for kind, count in unclosed.items()],
        refused_events=[RefusedEventCount(*event, count) for event, count in refused.most_common()],
        versions=ServiceVersions(__version__, sys.version, postgres, migration),
    )


def age(now: datetime, since: datetime | None) -> float:
    """In seconds."""
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0
