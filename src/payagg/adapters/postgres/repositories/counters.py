"""What all processes counted, as rows: totals for the metrics, and hits of rate limits."""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from sqlalchemy import delete, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.schema.tables import rate_hits, tallies
from payagg.domain.rate_limit import RateLimit

COUNTS_MAX = 10_000  # names times labels, which come from closed sets
SWEEP_MAX = 5_000  # buckets removed at once
# The row's lock makes hits of one bucket follow each other, so that no two see the same last room. `oldest_hit` is as
# of the statement's start, which for the time to wait is near enough.
HIT = text("""
WITH counted AS (
    INSERT INTO rate_hits AS kept (bucket, hits, ends_at)
    VALUES (:bucket, jsonb_build_object(CAST(:mark AS text), 1), :ends_at)
    ON CONFLICT (bucket) DO UPDATE SET ends_at = greatest(kept.ends_at, excluded.ends_at), hits = (
        SELECT coalesce(jsonb_object_agg(mark, hits), '{}') FROM jsonb_each(kept.hits) AS live (mark, hits)
        WHERE CAST(mark AS bigint) >= :oldest
    ) || jsonb_build_object(CAST(:mark AS text), coalesce(CAST(kept.hits ->> :mark AS int), 0) + 1)
    WHERE (
        SELECT coalesce(sum(CAST(hits AS int)), 0) FROM jsonb_each(kept.hits) AS live (mark, hits)
        WHERE CAST(mark AS bigint) >= :oldest
    ) < :most
    RETURNING bucket
)
SELECT EXISTS (SELECT FROM counted) AS is_counted, (
    SELECT min(CAST(mark AS bigint)) FROM rate_hits, jsonb_object_keys(hits) AS mark
    WHERE bucket = :bucket AND CAST(mark AS bigint) >= :oldest
) AS oldest_hit
""")


async def add_counts(connection: AsyncConnection, counts: Mapping[tuple[str, ...], int]) -> None:
    if not counts:
        return
    # In one order, so that two processes that add at once wait for each other and do not deadlock.
    rows = [{"key": msgspec.json.encode(key).decode(), "value": counts[key]} for key in sorted(counts)]
    added = insert(tallies).values(rows)
    total = tallies.c.value + added.excluded.value
    await connection.execute(added.on_conflict_do_update(index_elements=["key"], set_={"value": total}))


async def all_counts(connection: AsyncConnection) -> dict[tuple[str, ...], int]:
    rows = await connection.execute(select(tallies.c.key, tallies.c.value).order_by(tallies.c.key).limit(COUNTS_MAX))
    return {tuple(msgspec.json.decode(key, type=list[str])): value for key, value in rows}


async def count_hit(connection: AsyncConnection, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
    mark = limit.mark(now)
    values = {
        "bucket": bucket,
        "mark": str(mark),
        "oldest": limit.oldest(now),
        "most": limit.most,
        "ends_at": limit.end_of(mark),
    }
    row = (await connection.execute(HIT, values)).one()
    return None if row.is_counted else limit.end_of(row.oldest_hit or mark)


async def sweep_hits(connection: AsyncConnection, now: datetime) -> None:
    """Removes buckets in which nothing counts any more, skipping what another process is removing."""
    dead = select(rate_hits.c.bucket).where(rate_hits.c.ends_at < now).limit(SWEEP_MAX)
    skipping = dead.with_for_update(skip_locked=True)
    await connection.execute(delete(rate_hits).where(rate_hits.c.bucket.in_(skipping)))
