"""Counters. An increment is a dictionary entry; each process adds its counts to the totals at intervals.
A scrape reaches one process of several, and the worker has no HTTP; prometheus-client's multiprocess mode shares files
of one machine. A crash of the database resets the totals, and a repeated transaction may count twice."""

import asyncio
from bisect import bisect_left
from collections import Counter
from functools import cache
from typing import Final

from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.store import Store

FLUSH_SECONDS = 10.0
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BYTES = tuple(mebibytes * 2**20 for mebibytes in (64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048))
MICRO = 1_000_000  # sums of seconds are kept in microseconds, as totals are integers
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
    """Adds this process's counts since the last flush to the totals; keeps them while the database is away."""
    taken = dict(counts)
    if not taken:
        return
    counts.clear()
    try:
        await store.add_counts(taken)
    except (Unavailable, Conflict):
        counts.update(taken)


async def keep_flushing(store: Store) -> None:
    """Flushes for ever."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        await flush(store)
