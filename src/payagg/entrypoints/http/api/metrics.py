"""Prometheus metrics at /metrics: totals over all processes, and how late the queues are."""

import hmac
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from litestar import Request, Response, get
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from payagg import __version__
from payagg.application.payments.provider_events import EventResult
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.providers import SignatureFault
from payagg.application.reports.health import age
from payagg.application.telemetry import BYTES, MICRO, SECONDS, bounds, counts, flush
from payagg.application.upkeep.retention import ENDING
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import PAYMENT
from payagg.domain.report import FaultKind, Outcome, ReportEffect
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.extensions import parts
from payagg.entrypoints.http.api.auth import bearer
from payagg.entrypoints.http.server.routing import services
from payagg.entrypoints.process.worker import sweeps

Labels = Iterable[tuple[str, ...]]
Totals = dict[tuple[str, ...], int]
ENVIRONMENTS = [environment.value for environment in Environment]


def _providers(use_cases: Services) -> list[str]:
    return [spec.slug for spec in use_cases.settings.providers]


def _calls(use_cases: Services) -> Labels:
    results = [*(outcome.value for outcome in Outcome), *(fault.value for fault in FaultKind)]
    return product(_providers(use_cases), ("fetch_charge",), results)


def _inbound(use_cases: Services) -> Labels:
    results = [*(effect.value for effect in ReportEffect), *(result.value for result in EventResult)]
    return product(_providers(use_cases), ENVIRONMENTS, results)


def _refused_events(use_cases: Services) -> Labels:
    return product(_providers(use_cases), ENVIRONMENTS, (fault.value for fault in SignatureFault))


def _moves(_: Services) -> Labels:
    pairs = sorted({(start.value, end.value) for (start, _), end in PAYMENT.moves.items() if start is not end})
    return ((*pair, environment) for pair, environment in product(pairs, ENVIRONMENTS))


def _nothing(_: Services) -> Labels:
    return ()


def _once(_: Services) -> Labels:
    return ((),)


def words(*listed: str) -> Callable[[Services], Labels]:
    return lambda _: ((word,) for word in listed)


@dataclass(frozen=True)
class CounterKind:
    text: str
    labels: tuple[str, ...] = ()
    from_start: Callable[[Services], Labels] = _nothing


COUNTERS = {
    "requests": CounterKind("HTTP requests by route and status.", ("method", "route", "status")),
    "payment_transitions": CounterKind("Changes of payment status.", ("from", "to", "environment"), _moves),
    "provider_calls": CounterKind("Calls to providers by result.", ("gateway", "operation", "result"), _calls),
    "inbound_events": CounterKind(
        "Events from providers by what they did.", ("provider", "environment", "result"), _inbound
    ),
    "refused_events": CounterKind(
        "Events from providers refused for their signature, by reason.",
        ("provider", "environment", "fault"),
        _refused_events,
    ),
    "connections_refused": CounterKind(
        "Connections closed because there were too many, in all or from one address.", (), _once
    ),
    "slow_readers": CounterKind("Connections reset because their clients did not read.", (), _once),
    "log_lines_dropped": CounterKind("Log lines that nobody read in time, or that could not be written.", (), _once),
    "anomalies": CounterKind(
        "Facts about money that changed no payment, by kind.", ("kind",), words(*(kind.value for kind in AnomalyKind))
    ),
    "idempotency_mismatches": CounterKind("Idempotency keys used again with another body.", (), _once),
    "delivery_tries": CounterKind(
        "Attempts to deliver an event, by class of response.",
        ("result",),
        words("2xx", "3xx", "4xx", "5xx", "other", "no answer"),
    ),
    "delivery_leases_lapsed": CounterKind("Attempts taken over from a worker that died.", (), _once),
    "rows_ended": CounterKind("Rows removed after their time, by table.", ("table",), words(*ENDING)),
    "worker_sweeps": CounterKind(
        "Rounds that workers completed, by kind of work: none in a while means that no worker runs.",
        ("sweep",),
        lambda use_cases: (("deliveries",), *((sweep.name,) for sweep in sweeps(use_cases))),
    ),
}


@dataclass(frozen=True)
class HistogramKind:
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS
    sum_unit: int = MICRO  # the sum is kept in these parts


HISTOGRAMS = {
    "request_duration_seconds": HistogramKind("Time to answer HTTP requests, by route.", ("method", "route")),
    "provider_call_duration_seconds": HistogramKind("Time of calls to providers.", ("gateway", "operation")),
    "database_wait_seconds": HistogramKind("Time waited for a free database connection."),
    "clock_difference_seconds": HistogramKind(
        "Difference of a machine's clock from the database's, measured every half minute."
    ),
    "loop_lag_seconds": HistogramKind("Lag of a process's event loop, measured every second.", ("process",)),
    "process_memory_bytes": HistogramKind(
        "Resident memory of a process on Linux, measured every minute.", ("process",), BYTES, 1
    ),
}


def counter_families(
    use_cases: Services, totals: Totals, kinds: Mapping[str, CounterKind] = COUNTERS
) -> Iterator[Metric]:
    for name, kind in kinds.items():
        told = dict.fromkeys(kind.from_start(use_cases), 0)
        told |= {key[1:]: value for key, value in totals.items() if key[0] == name and len(key) == len(kind.labels) + 1}
        family = CounterMetricFamily(f"payagg_{name}", kind.text, labels=kind.labels)
        for labels, value in sorted(told.items()):
            family.add_metric(labels, value)
        yield family


def histogram_families(totals: Totals) -> Iterator[Metric]:
    for name, kind in HISTOGRAMS.items():
        family = HistogramMetricFamily(f"payagg_{name}", kind.text, labels=kind.labels)
        seen = {key[1:-1] for key in totals if key[0] == name and len(key) == len(kind.labels) + 2}
        for label_values in sorted(seen):
            so_far, buckets = 0, []
            for bound in bounds(kind.buckets):
                so_far += totals.get((name, *label_values, bound), 0)
                buckets.append((bound, float(so_far)))
            total = totals.get((f"{name}_sum", *label_values), 0) / kind.sum_unit
            family.add_metric(label_values, buckets, total)
        yield family


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
