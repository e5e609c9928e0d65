"""What a router counts, and how it is told.

The processes of one router count in files of one folder, which their supervisor names by the client library's own
variable: whichever of them is asked tells the totals, those of processes that have ended too.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import product

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from payagg import __version__

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # read by the library as it is imported
FOUND, UNKNOWN, NOT_ANSWERED = "found", "unknown", "not answered"

disable_created_metrics()  # type: ignore[no-untyped-call]  # cells tell none either
REQUESTS = Counter(
    "payagg_route_requests",
    "Requests by the cell that answered, what named it, and status.",
    ("cell", "by", "status"),
    registry=None,
)
LOOKUPS = Counter(
    "payagg_route_lookups",
    "Questions to all cells about a key or a business, by what came of it.",
    ("by", "result"),
    registry=None,
)
FOLLOWED = Counter("payagg_route_followed", "Answers of a cell that another one has it now.", ("cell",), registry=None)
UNREACHABLE = Counter(
    "payagg_route_unreachable", "Requests and questions to a cell that gave no answer.", ("cell",), registry=None
)
LOG_LINES_DROPPED = Counter(
    "payagg_route_log_lines_dropped",
    "Lines of the log that nobody took in time, or that could not be written.",
    registry=None,
)
COUNTERS = (REQUESTS, LOOKUPS, FOLLOWED, UNREACHABLE, LOG_LINES_DROPPED)


def begin_at_zero(cells: Iterable[str], asked: Iterable[str]) -> None:
    """A counter that first appears with its first event hides that event from `rate`."""
    for cell in cells:
        FOLLOWED.labels(cell)
        UNREACHABLE.labels(cell)
    for labels in product(asked, (FOUND, UNKNOWN, NOT_ANSWERED)):
        LOOKUPS.labels(*labels)


def exposition() -> bytes:
    """All of it in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    if FOLDER_VARIABLE in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        for counter in COUNTERS:
            registry.register(counter)
    registry.register(_Build())
    return generate_latest(registry)


class _Build:
    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("payagg_build_info", "What runs here.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
