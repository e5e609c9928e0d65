"""What the archive needs: its rows, an object store and a file format."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from payagg.application.ports.outside import Unavailable
from payagg.domain.archived import ArchivedPayment, ArchivePart


class ArchiveUnavailable(Unavailable):
    """The archive's object store cannot be reached."""


class ArchiveFile(Protocol):
    """One table's rows, on their way into a file."""

    @property
    def rows(self) -> int: ...

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None: ...

    def finish(self) -> bytes: ...


class ArchiveFormat(Protocol):
    @property
    def suffix(self) -> str:
        """Of the files' names."""

    def file(self, columns: Mapping[str, type]) -> ArchiveFile: ...

    def rows(
        self, content: bytes, columns: Mapping[str, type], reference: str | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """All rows in their order, or those of one payment. Raises ValueError or OSError for a file that is damaged or
        has other columns."""


class ArchiveRepository(Protocol):
    """What is archived of payments: their transitions, attempts and provider calls."""

    async def next_with_history(self, after: str) -> str | None:
        """The first reference behind `after` whose history is still here."""

    async def ready(self, after: str, until: str, before: datetime, limit: int) -> tuple[list[str], str | None]:
        """Of the next `limit` payments with a history here, behind `after` and up to `until` by their references: those
        that may be archived; and the last one looked at, None past the end. May be archived: final, made before that
        instant, with no event and no delivery left, no open anomaly, and nobody to be asked about it."""

    async def lock_ready(self, references: Sequence[str]) -> list[str]:
        """Which of them may be archived, in their order, locked."""

    async def histories(self, references: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
        """Their rows by table as in `archive_tables.TABLES`, sorted by reference and what follows it in the key."""

    async def move(self, payments: Sequence[ArchivedPayment], calls: Sequence[tuple[str, str]]) -> None:
        """Removes the transitions and attempts of these locked payments, and these calls (reference, id)."""

    async def find_archived(self, references: Sequence[str]) -> set[str]:
        """Which of them are archived and removed."""

    async def find(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None: ...


class ArchivePartRepository(Protocol):
    """Parts of the archive, each a folder of files."""

    async def begin(self, day: str, folder: str, now: datetime) -> ArchivePart: ...

    async def finish(self, part: ArchivePart) -> None:
        """Records that the part is written. Raises Conflict when it was given up."""

    async def give_up(self, number: int) -> None:
        """Forgets a part that is not written."""

    async def of_day(self, day: str) -> list[ArchivePart]:
        """Those of the day that are not removed from here, by number."""

    async def unfinished_days(self) -> list[str]:
        """Days of which some part is not removed from here, in order."""

    async def close(self, number: int, now: datetime) -> None:
        """All that may be removed of it is."""
