"""`payagg archive --remove` that dies: `python -m tests.integration.postgres.archiving URL FOLDER BEFORE STEP`."""

import asyncio
import sys
from datetime import date

from payagg_testing.builders import AN_ADMIN

from payagg.adapters.logos import ArchiveObjects
from payagg.adapters.parquet import Parquet
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.application.archive.reader import ArchiveReader
from payagg.application.archive.writer import Archive
from tests.support.crashes import crash_at

PART = 100  # payments


async def archive(url: str, folder: str, before: str, step: str) -> None:
    store = PostgresStore(url, pool_size=1, pgbouncer=False)
    reader = ArchiveReader(ArchiveObjects(folder), Parquet())
    use = Archive(store, SystemClock(), SystemEntropy("PAY"), reader, crash_at(step), PART)
    async for _ in use.run(date.fromisoformat(before), remove=True, by=AN_ADMIN):
        pass


if __name__ == "__main__":
    asyncio.run(archive(*sys.argv[1:]))
