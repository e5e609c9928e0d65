"""What all processes counted, as rows."""

from collections.abc import Mapping

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.schema.tables import tallies

COUNTS_MAX = 10_000  # names times labels, which come from closed sets


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
