"""`payagg archive`: a line for each day."""

import argparse
import asyncio
from datetime import date

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.system import DatabaseClock, SystemEntropy
from payagg.application.counters import flush
from payagg.application.ports.archived import ArchiveDamaged
from payagg.entrypoints.cli.commands import CommandFailed
from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say
from payagg.entrypoints.settings import Settings
from payagg.extensions.archive.files import archive_reader
from payagg.extensions.archive.ports import ArchiveUnavailable
from payagg.extensions.archive.writer import Archive, ArchivedDay, ArchiveTaken


def archive(options: argparse.Namespace, settings: Settings) -> int:
    try:
        with database(settings) as url:
            asyncio.run(_archive(settings, url, options.before, remove=options.remove))
    except ArchiveDamaged as error:
        raise CommandFailed(f"The archive is damaged: {error}. Nothing was removed for it.") from error
    except ArchiveTaken as error:
        raise CommandFailed(f"Stopped: {error}.") from error
    except ArchiveUnavailable as error:
        raise CommandFailed(f"The archive cannot be used: {error}.") from error
    return 0


async def _archive(settings: Settings, url: str, before: date, *, remove: bool) -> None:
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
