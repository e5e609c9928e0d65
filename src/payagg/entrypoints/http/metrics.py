"""Prometheus metrics at /metrics: totals over all processes, and how late the queues are."""

import hmac
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from litestar import Request, Response, get
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from payagg.application.counters import counts, flush
from payagg.application.ports import Conflict, Unavailable
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.auth import bearer
from payagg.entrypoints.http.routing import services

# Per counter: what it says and the names of its labels.
COUNTERS = {
    "requests": ("HTTP requests by route and status.", ("method", "route", "status")),
    "payment_transitions": ("Changes of payment status.", ("from", "to", "environment")),
    "provider_calls": ("Calls to providers by result.", ("gateway", "operation", "result")),
    "inbound_events": ("Events from providers by what they did.", ("provider", "environment", "result")),
    "refused_events": (
        "Events from providers that were refused for their signature, by why.",
        ("provider", "environment", "fault"),
    ),
    "connections_refused": ("Connections closed unread, as there were too many in all or of one address.", ()),
    "slow_readers": ("Connections reset, as their clients did not read their answers.", ()),
    "anomalies": ("Facts kept that must not move a payment, by kind.", ("kind",)),
    "idempotency_mismatches": ("Idempotency keys used again with another body.", ()),
    "delivery_tries": ("Tries to deliver an event, by class of answer.", ("result",)),
    "delivery_leases_lapsed": ("Tries taken over from a worker that never recorded them.", ()),
    "test_deliveries": ("Test deliveries by result.", ("result",)),
}


class Snapshot:
    """One scrape's values, in the form that the client library writes."""

    def __init__(
        self,
        totals: dict[tuple[str, ...], int],
        gauges: dict[str, tuple[str, float]],
        unclosed: Mapping[AnomalyKind, int] | None = None,
    ) -> None:
        self._totals = totals
        self._gauges = gauges
        self._unclosed = unclosed

    def collect(self) -> Iterator[Metric]:
        for name, (text, labels) in COUNTERS.items():
            family = CounterMetricFamily(f"payagg_{name}", text, labels=labels)
            for key, value in sorted(self._totals.items()):
                if key[0] == name and len(key) == len(labels) + 1:
                    family.add_metric(key[1:], value)
            yield family
        for name, (text, level) in self._gauges.items():
            yield GaugeMetricFamily(f"payagg_{name}", text, value=level)
        if self._unclosed is not None:
            waiting = GaugeMetricFamily("payagg_anomalies_unclosed", "Anomalies to be worked off.", labels=["kind"])
            for kind in AnomalyKind:
                waiting.add_metric([kind.value], self._unclosed.get(kind, 0))
            yield waiting


async def snapshot(use_cases: Services) -> Snapshot:
    """With the database away: `payagg_database_up 0` and what this process counted and could not add yet."""
    try:
        await flush(use_cases.store)
        totals = await use_cases.store.counts()
        async with use_cases.store.begin() as tx:
            unclosed = await tx.anomalies.unclosed()
        now = use_cases.clock.now()
        gauges = {
            "database_up": ("Whether the database answers.", 1.0),
            "deliveries_oldest_due_seconds": (
                "How long the longest overdue delivery has been due.",
                _age(now, await use_cases.store.queue.oldest_due(now)),
            ),
            "webhook_endpoints_deactivated": (
                "Endpoints that are switched off.",
                float(await use_cases.store.queue.deactivated()),
            ),
            "payments_oldest_unasked_seconds": (
                "How long the longest overdue question to a provider has been due.",
                _age(now, await use_cases.reconciler.oldest_unasked()),
            ),
        }
    except (Unavailable, Conflict):
        return Snapshot(dict(counts), {"database_up": ("Whether the database answers.", 0.0)})
    return Snapshot(totals, gauges, unclosed)


def _age(now: datetime, since: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0


@get("/metrics")
async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """For whoever presents the bearer that PAYAGG_METRICS_TOKEN names; where none is set, `dev` alone answers."""
    use_cases = services(request)
    token = use_cases.settings.metrics_token
    if token is None and not use_cases.settings.dev:
        raise Refusal(ErrorCode.UNAUTHORIZED, "Metrics are closed: PAYAGG_METRICS_TOKEN is not set.")
    if token is not None and not hmac.compare_digest(bearer(request).encode(), token.encode()):
        raise Refusal(ErrorCode.UNAUTHORIZED)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(await snapshot(use_cases))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


routes = [metrics]
