"""Which metrics there are: names, labels, and the label values that begin at zero.

A counter that first appears with its first event hides that event from `rate`, so known label values begin at zero.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from payagg.application.payments.provider_events import EventResult
from payagg.application.ports.provider_events import SignatureFault
from payagg.application.telemetry import BYTES, MICRO, SECONDS, bounds
from payagg.application.upkeep.retention import ENDING
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.payment import PAYMENT
from payagg.domain.report import FaultKind, Outcome, ReportEffect
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
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
