"""Ports of the archive: its rows and its parts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from payagg.application.ports.outside import Unavailable
from payagg.application.ports.store import Repository
from payagg.domain.archived import ArchivedPayment, ArchivePart


class ArchiveUnavailable(Unavailable):
    """The archive's object store cannot be reached."""


class ArchiveRepository(Protocol):
    """The archived part of payments: transitions, attempts and provider calls."""

    async def next_with_history(self, after: str) -> str | None:
        """The first reference behind `after` whose history is still here."""

    async def ready(self, after: str, until: str, before: datetime, limit: int) -> tuple[list[str], str | None]:
        """Looks at the next `limit` payments with a history here, after `after` and up to `until` by reference; returns
        those that may be archived and the last one looked at, None past the end. A payment may be archived when it is
        final, older than that instant, and has no event, delivery, open anomaly or status check left."""

    async def lock_ready(self, references: Sequence[str]) -> list[str]:
        """Those of them that may be archived, in order, locked."""

    async def histories(self, references: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
        """Their rows by table as in `archive_tables.TABLES`, sorted by key."""

    async def move(self, payments: Sequence[ArchivedPayment], calls: Sequence[tuple[str, str]]) -> None:
        """Removes the transitions and attempts of these locked payments, and these calls (reference, id)."""

    async def find_archived(self, references: Sequence[str]) -> set[str]:
        """Those of them that are archived and removed."""


class ArchivePartRepository(Protocol):
    """Parts of the archive, each a folder of files."""

    async def begin(self, day: str, folder: str, now: datetime) -> ArchivePart: ...

    async def finish(self, part: ArchivePart) -> None:
        """Marks the part as written. Raises Conflict when it was given up."""

    async def give_up(self, number: int) -> bool:
        """Deletes the row of an unwritten part; False when it is written or gone. Until the transaction's end nobody
        finishes it."""

    async def of_day(self, day: str) -> list[ArchivePart]:
        """The day's parts whose rows are still here, by number."""

    async def unfinished_days(self) -> list[str]:
        """Days with a part whose rows are still here, in order."""

    async def close(self, number: int, now: datetime) -> None:
        """Marks the part as removed as far as it may be."""


ARCHIVE: Repository[ArchiveRepository] = Repository("payagg.extensions.archive.postgres:PostgresArchive")
PARTS: Repository[ArchivePartRepository] = Repository("payagg.extensions.archive.postgres:PostgresArchiveParts")
