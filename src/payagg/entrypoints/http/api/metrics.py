"""Prometheus metrics at /metrics: totals over all processes, and how late the queues are."""

import hmac
import platform
from collections.abc import Iterable
from itertools import product
from typing import Any

from litestar import Request, Response, get
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from payagg import __version__
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.reports.health import age
from payagg.application.telemetry import counts, flush
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.extensions import parts
from payagg.entrypoints.http.api.auth import bearer
from payagg.entrypoints.http.api.metric_families import Totals, counter_families, histogram_families
from payagg.entrypoints.http.server.routing import services

DEPTH_MAX = 100_000  # a longer queue is reported as this long
INBOX_DEPTH_MAX = 1_000


class Snapshot:
    """One scrape's families, as the client library collects them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def snapshot(use_cases: Services) -> Snapshot:
    """With the database away: `payagg_database_up 0` and this process's unflushed counts."""
    try:
        await flush(use_cases.store)
        totals = await use_cases.store.counts()
        kept = await _of_database(use_cases, totals)
    except (Unavailable, Conflict):
        totals, kept = dict(counts), [_database_up(0)]
    build = GaugeMetricFamily("payagg_build_info", "What runs here.", labels=["version", "python"])
    build.add_metric([__version__, platform.python_version()], 1)
    return Snapshot([*counter_families(use_cases, totals), *histogram_families(totals), build, *kept])


async def _of_database(use_cases: Services, totals: Totals) -> list[Metric]:
    now, queue = use_cases.clock.now(), use_cases.store.queue
    async with use_cases.store.begin() as tx:
        unclosed = await tx.anomalies.count_open()
        waiting = await tx.inbox.count_due(now, INBOX_DEPTH_MAX)
    gauges = [
        _database_up(1),
        GaugeMetricFamily(
            "payagg_deliveries_due",
            f"Deliveries that are due and in nobody's hands, counted up to {DEPTH_MAX}.",
            value=await queue.due(now, DEPTH_MAX),
        ),
        GaugeMetricFamily(
            "payagg_deliveries_oldest_due_seconds",
            "How long the longest overdue delivery has been due.",
            value=age(now, await queue.oldest_due(now)),
        ),
        GaugeMetricFamily(
            "payagg_inbox_due",
            f"Events from providers that wait to be handled again, counted up to {INBOX_DEPTH_MAX}.",
            value=waiting,
        ),
        GaugeMetricFamily(
            "payagg_webhook_endpoints_deactivated",
            "Endpoints that are switched off.",
            value=await queue.count_deactivated(),
        ),
        GaugeMetricFamily(
            "payagg_payments_oldest_unasked_seconds",
            "How long the longest overdue question to a provider has been due.",
            value=age(now, await use_cases.reconciler.oldest_unasked()),
        ),
    ]
    labels = ["kind", "environment"]
    open_ones = GaugeMetricFamily("payagg_anomalies_unclosed", "Anomalies to be worked off.", labels=labels)
    for kind, place in product(AnomalyKind, (*Environment, None)):
        open_ones.add_metric([kind.value, place.value if place else "UNKNOWN"], unclosed.get((kind, place), 0))
    own = parts(use_cases.settings.extensions, "metrics")
    return [*gauges, open_ones, *[family for bring in own for family in await bring(use_cases, totals)]]


def _database_up(value: int) -> Metric:
    return GaugeMetricFamily("payagg_database_up", "Whether the database answers.", value=value)


@get("/metrics")
async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """For the bearer PAYAGG_METRICS_TOKEN; without one only `dev` answers. Totals show how much is paid, on the port of
    payers, and behind a proxy on the same machine every caller is loopback."""
    use_cases = services(request)
    token = use_cases.settings.metrics_token
    if token is None and not use_cases.settings.dev:
        raise Refusal(ErrorCode.UNAUTHORIZED, "Metrics are closed: PAYAGG_METRICS_TOKEN is not set.")
    if token is not None and not hmac.compare_digest(bearer(request).encode(), token.encode()):
        raise Refusal(ErrorCode.UNAUTHORIZED)
    return Response(generate_latest(await snapshot(use_cases)), headers={"Content-Type": CONTENT_TYPE_LATEST})


routes = [metrics]
