"""`payagg archive`: a line for each day."""

import argparse
from functools import partial

from payagg.application.ports.payments import ArchiveDamaged
from payagg.application.telemetry import flush
from payagg.entrypoints.cli.commands import CommandFailed
from payagg.entrypoints.cli.operators import operator, say, with_use_case
from payagg.entrypoints.settings import Settings
from payagg.extensions.archive.reader import ArchiveUnavailable, archive_reader
from payagg.extensions.archive.writer import Archive, ArchivedDay, ArchiveTaken


def archive(options: argparse.Namespace, settings: Settings) -> int:
    try:
        with_use_case(settings, partial(Archive, reader=archive_reader(settings)), partial(_archive, options))
    except ArchiveDamaged as error:
        raise CommandFailed(f"The archive is damaged: {error}. Nothing was removed for it.") from error
    except ArchiveTaken as error:
        raise CommandFailed(f"Stopped: {error}.") from error
    except ArchiveUnavailable as error:
        raise CommandFailed(f"The archive cannot be used: {error}.") from error
    return 0


async def _archive(options: argparse.Namespace, use: Archive) -> None:
    days = 0
    try:
        async for day in use.run(options.before, remove=options.remove, by=operator()):
            days += 1
            say(_line(day))
        if not days:
            say("There is nothing to archive.")
    finally:
        await flush(use.store)


def _line(day: ArchivedDay) -> str:
    parts = [f"{day.written:,} payments written in {day.bytes:,} bytes"]
    if day.waiting:
        parts.append(f"{day.waiting:,} written before wait for --remove")
    if day.removed or day.left:
        parts.append(f"{day.removed:,} removed from the database")
    if day.left:
        parts.append(f"{day.left:,} left in it")
    return f"{day.day}  {', '.join(parts)}"
