"""What a process tells of itself: counters, spans of a trace, and the frames of a fault.

A counter's increment is a dictionary entry; each process adds its counts to the totals at intervals. A scrape reaches
one process of several, and the worker has no HTTP; prometheus-client's multiprocess mode shares files of one machine. A
crash of the database resets the totals, and a repeated transaction may count twice."""

import asyncio
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Final

import structlog

from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.store import Store

FLUSH_SECONDS = 10.0
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BYTES = tuple(mebibytes * 2**20 for mebibytes in (64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048))
MICRO = 1_000_000  # sums of seconds are kept in microseconds, as totals are integers
_log = structlog.get_logger("payagg.telemetry")
counts: Final[Counter[tuple[str, ...]]] = Counter()


def count(name: str, *labels: str, by: int = 1) -> None:
    """Adds `by` under `name` and its labels. Labels must come from closed sets: each combination is kept for ever."""
    counts[name, *labels] += by


def observe(name: str, seconds: float, *labels: str) -> None:
    """Adds one duration to the histogram `name`: one in its bucket, and its microseconds to the sum."""
    buckets, total = _series("seconds", name, *labels)
    counts[buckets[bisect_left(SECONDS, seconds)]] += 1
    counts[total] += int(seconds * MICRO)


def observe_bytes(name: str, size: int, *labels: str) -> None:
    """Adds one size to the histogram `name`."""
    buckets, total = _series("bytes", name, *labels)
    counts[buckets[bisect_left(BYTES, size)]] += 1
    counts[total] += size


@cache
def bounds(buckets: tuple[float, ...]) -> tuple[str, ...]:
    """The names of a histogram's buckets: their upper bounds, and `+Inf` for the last."""
    return (*map(str, buckets), "+Inf")


@cache
def _series(unit: str, name: str, *labels: str) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Under what a histogram counts: each of its buckets, and its sum."""
    own = bounds(SECONDS if unit == "seconds" else BYTES)
    return [(name, *labels, bound) for bound in own], (f"{name}_sum", *labels)


async def flush(store: Store) -> None:
    """Adds this process's counts since the last flush to the totals; keeps them where that fails."""
    taken = dict(counts)
    if not taken:
        return
    counts.clear()
    try:
        await store.add_counts(taken)
    except Exception as error:  # noqa: BLE001 - else `keep_flushing` ends, and with it all that alerts look at
        counts.update(taken)
        if not isinstance(error, Unavailable | Conflict):
            _log.error("counters cannot be added", trace=trace_of(error))


async def keep_flushing(store: Store) -> None:
    """Flushes for ever."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        await flush(store)


Opener = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
NO_ATTRIBUTES: Mapping[str, str] = {}
_NOTHING: AbstractContextManager[object] = nullcontext()


class _Tracer:
    opener: Opener | None = None


def trace_with(opener: Opener | None) -> None:
    """Sets what opens spans: `opener` gets a name and attributes; None = no spans."""
    _Tracer.opener = opener


def span(name: str, attributes: Mapping[str, str] = NO_ATTRIBUTES) -> AbstractContextManager[object]:
    """A span for the block. Attributes may hold no secret and nothing of a payer."""
    return _NOTHING if _Tracer.opener is None else _Tracer.opener(name, attributes)


TRACE_LINES_MAX = 100


def trace_of(error: BaseException) -> list[str]:
    """Types and frames of `error` and its causes, innermost last. Without messages and values: a driver's message
    repeats the row, customer and all."""
    lines: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(lines) < TRACE_LINES_MAX:
        frames = traceback.extract_tb(seen.__traceback__)
        lines.append(type(seen).__qualname__)
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        seen = seen.__cause__ or seen.__context__
    return lines[:TRACE_LINES_MAX]
