"""Counters as rows: totals of all processes for the metrics, and hits of rate limits."""

# ruff: noqa: S608 - our own words

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from payagg.adapters.postgres.fast_path.batching import Batch, Note
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement
from payagg.domain.rate_limit import RateLimit

COUNTS_MAX = 10_000  # names times labels, which come from closed sets
SWEEP_MAX = 5_000  # buckets removed at once


ADD_COUNTS = Statement("""
INSERT INTO tallies AS kept (key, value)
SELECT key, value FROM unnest(CAST(:keys AS text[]), CAST(:values AS bigint[]))
    WITH ORDINALITY AS given (key, value, position) ORDER BY position
ON CONFLICT (key) DO UPDATE SET value = kept.value + excluded.value
""")
ALL_COUNTS = Statement(f"SELECT key, value FROM tallies ORDER BY key LIMIT {COUNTS_MAX}")
# The row's lock serialises the hits of one bucket, so no two take the same last slot. `oldest_hit` is as of the
# statement's start, close enough for the time to wait.
HIT = Statement("""
WITH counted AS (
    INSERT INTO rate_hits AS kept (bucket, hits, ends_at)
    VALUES (:bucket, jsonb_build_object(CAST(:mark AS text), 1), :ends_at)
    ON CONFLICT (bucket) DO UPDATE SET ends_at = greatest(kept.ends_at, excluded.ends_at), hits = (
        SELECT coalesce(jsonb_object_agg(mark, hits), '{}') FROM jsonb_each(kept.hits) AS live (mark, hits)
        WHERE CAST(mark AS bigint) BETWEEN :oldest AND :newest
    ) || jsonb_build_object(CAST(:mark AS text), coalesce(CAST(kept.hits ->> :mark AS int), 0) + 1)
    WHERE (
        SELECT coalesce(sum(CAST(hits AS int)), 0) FROM jsonb_each(kept.hits) AS live (mark, hits)
        WHERE CAST(mark AS bigint) BETWEEN :oldest AND :newest
    ) < :most
    RETURNING bucket
)
SELECT EXISTS (SELECT FROM counted) AS is_counted, (
    SELECT min(CAST(mark AS bigint)) FROM rate_hits, jsonb_object_keys(hits) AS mark
    WHERE bucket = :bucket AND CAST(mark AS bigint) BETWEEN :oldest AND :newest
) AS oldest_hit
""")
# Skipping what another process is removing.
SWEEP_HITS = Statement(f"""
DELETE FROM rate_hits WHERE bucket IN (
    SELECT bucket FROM rate_hits WHERE ends_at < :now LIMIT {SWEEP_MAX} FOR UPDATE SKIP LOCKED
)
""")


async def add_counts(pool: StatementPool, counts: Mapping[tuple[str, ...], int]) -> None:
    if not counts:
        return
    # In one order, so two processes that add at once wait and do not deadlock.
    ordered = sorted(counts)
    keys, values = [msgspec.json.encode(key).decode() for key in ordered], [counts[key] for key in ordered]
    async with pool.transaction() as connection:
        connection.send(ADD_COUNTS, keys=keys, values=values)


async def all_counts(pool: StatementPool) -> dict[tuple[str, ...], int]:
    rows = await pool.read(ALL_COUNTS)
    return {tuple(msgspec.json.decode(key, type=list[str])): value for key, value in rows}


async def count_hit(notes: Batch[Note, list[Any]], bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
    """A hit counted twice, after a lost answer, errs on the side of the limit."""
    mark = limit.mark(now)
    counted = {"bucket": bucket, "mark": str(mark), "oldest": limit.oldest(now), "newest": limit.newest(now)}
    values = {**counted, "most": limit.most, "ends_at": limit.end_of(mark)}
    [(is_counted, oldest_hit)] = await notes.ask(Note(f"hit {bucket}", HIT, values))
    return None if is_counted else limit.end_of(oldest_hit or mark)


async def sweep_hits(pool: StatementPool, now: datetime) -> None:
    """Removes buckets without counted hits."""
    await pool.read(SWEEP_HITS, now=now)
