"""`payagg archive`: a line for each day."""

import argparse
import asyncio
from datetime import date

from payagg.application.archive.writer import ArchivedDay
from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say
from payagg.entrypoints.settings import Settings


def archive(options: argparse.Namespace, settings: Settings) -> int:
    with database(settings) as url:
        asyncio.run(_archive(settings, url, options.before, remove=options.remove))
    return 0


async def _archive(settings: Settings, url: str, before: date, *, remove: bool) -> None:
    from payagg.adapters.postgres.store import PostgresStore
    from payagg.adapters.system import DatabaseClock, SystemEntropy
    from payagg.application.archive.writer import Archive
    from payagg.application.counters import flush
    from payagg.entrypoints.bootstrap import archive_reader

    store = PostgresStore(url, pool_size=1, pgbouncer=settings.pgbouncer)
    days = 0
    try:
        clock = DatabaseClock(store.now)
        await clock.synchronise()
        use = Archive(store, clock, SystemEntropy(settings.reference_prefix), archive_reader(settings))
        async for day in use.run(before, remove=remove, by=operator()):
            days += 1
            say(_line(day))
        if not days:
            say("There is nothing to archive.")
    finally:
        await flush(store)
        await store.close()


def _line(day: ArchivedDay) -> str:
    parts = [f"{day.written:,} payments written in {day.bytes:,} bytes"]
    if day.waiting:
        parts.append(f"{day.waiting:,} written before wait for --remove")
    if day.removed or day.left:
        parts.append(f"{day.removed:,} removed from the database")
    if day.left:
        parts.append(f"{day.left:,} left in it")
    return f"{day.day}  {', '.join(parts)}"
