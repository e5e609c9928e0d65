"""The archive: transitions, attempts and provider calls of payments that ended, as files in the object store.

A part is written, read back and recorded; only then, and only where it is asked for, its rows leave the database, a
batch and a transaction at a time, each payment with all of its rows or not at all. Every step may be repeated after a
crash.

The row of `payments` stays: every read, list and export works without the archive.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time

import msgspec

from payagg.application.payments.provider_calls import no_crash
from payagg.application.ports.outside import Conflict
from payagg.application.ports.payments import ArchiveDamaged
from payagg.application.telemetry import count
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.archived import ArchivePart
from payagg.domain.audit import Action, Actor
from payagg.domain.errors import invalid
from payagg.extensions.archive.postgres import ArchiveRows, PartRows
from payagg.extensions.archive.reader import ArchiveReader
from payagg.extensions.archive.tables import (
    MANIFEST,
    SUFFIX,
    TABLES,
    VERSION,
    ArchivedObject,
    History,
    Manifest,
    by_payment,
    file_of,
    named_columns,
    read_rows,
    remaining,
)

STEP = 1_000  # payments looked at in one transaction
BATCH = 500  # payments removed in one
PART = 10_000  # payments of a part, whose rows are held in memory
AT_WORK = "another `payagg archive` is at work, and does the same"
_LAST = "ZZZZZZ"


class ArchiveTaken(Exception):
    """Another command gave this unfinished part up."""


@dataclass(frozen=True)
class ArchivedDay:
    """The result of one day, in payments. `waiting`: in parts written before and not removed; `left`: in removed parts,
    but changed since or still needed here."""

    day: str
    written: int = 0
    bytes: int = 0
    removed: int = 0
    left: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Archive(UseCase):
    reader: ArchiveReader
    crash_point: Callable[[str], None] = no_crash
    part_max: int = PART

    async def run(self, before: date, *, remove: bool, by: Actor) -> AsyncIterator[ArchivedDay]:
        """Archives each day before that date, the oldest first. Raises VALIDATION_ERROR, ArchiveDamaged, ArchiveTaken,
        Unavailable; finished work stays, and the next run continues from there."""
        midnight = datetime.combine(before, time(), UTC)
        if midnight > self.clock.now():
            raise invalid("before", "Must not be later than today.")
        unfinished = await in_transaction(self.store, lambda tx: tx.of(PartRows).unfinished_days())
        begun = [day for day in unfinished if day[4:] < f"{before:%Y%m%d}"]
        for day in begun:
            yield await self._day(day, midnight, remove, by)
        after = ""
        while (reference := await self._next(after)) is not None:
            day = reference[: -len(f"-{_LAST}")]
            after = f"{day}-{_LAST}"
            if day[4:] >= f"{before:%Y%m%d}":
                after = f"{day[:4]}99991231-{_LAST}"  # another prefix may have older days
            elif day not in begun:
                yield await self._day(day, midnight, remove, by)

    async def _day(self, day: str, before: datetime, remove: bool, by: Actor) -> ArchivedDay:
        done, after = ArchivedDay(day), f"{day}-"
        for part in await in_transaction(self.store, lambda tx: tx.of(PartRows).of_day(day)):
            if part.last_reference is None:
                await self._give_up(part)
            elif remove:
                done = await self._remove(part, done, by)
            else:
                after, done = part.last_reference, replace(done, waiting=done.waiting + part.payments)
        while (written := await self._write(day, after, before)) is not None:
            part, reached, size = written
            after = reached
            done = replace(done, written=done.written + part.payments, bytes=done.bytes + size)
            if remove:
                done = await self._remove(part, done, by)
        return done

    async def _write(self, day: str, after: str, before: datetime) -> tuple[ArchivePart, str, int] | None:
        """The next part of the day, recorded, with its last reference and its bytes; None when nothing is left to
        archive."""
        part: ArchivePart | None = None
        first, reached, payments = "", after, 0
        part_rows: History = {table: [] for table in TABLES}
        while payments < self.part_max:
            ready, last, history = await self._read(day, reached, min(STEP, self.part_max - payments), before)
            if last is None:
                break
            reached = last
            if ready:
                part = part or await self._begin(day)
                first = first or ready[0]
                payments += len(ready)
                for table, rows in history.items():
                    part_rows[table] += rows
        if part is None:
            return None
        described, size = {}, 0
        for table, rows in part_rows.items():
            content = file_of(rows, TABLES[table])
            name, digest = f"{table}{SUFFIX}", hashlib.sha256(content).hexdigest()
            described[table] = ArchivedObject(name, len(rows), len(content), digest)
            size += len(content)
            await self.reader.objects.put(f"{part.folder}/{name}", content)
        manifest = Manifest(VERSION, day, first, reached, payments, part.started_at, described)
        encoded = msgspec.json.format(msgspec.json.encode(manifest))
        await self.reader.objects.put(f"{part.folder}/{MANIFEST}", encoded)
        self.crash_point("A1")
        own = hashlib.sha256(encoded).digest()
        part = replace(part, payments=payments, last_reference=reached, manifest=own)
        try:
            await self.reader.contents(part)
        except ArchiveDamaged:
            await self._delete_files(part)
            await in_transaction(self.store, lambda tx: tx.of(PartRows).give_up(part.number))
            raise
        await self._finish(part)
        self.crash_point("A2")
        return part, reached, size + len(encoded)

    async def _remove(self, part: ArchivePart, done: ArchivedDay, by: Actor) -> ArchivedDay:
        """Removes the part's rows where the database still holds equal ones."""
        contents = await self.reader.contents(part)
        await self._begin_removal(part, by)
        references = [row[0] for row in read_rows(contents["payments"], TABLES["payments"])]
        rows = {table: read_rows(content, TABLES[table]) for table, content in contents.items()}
        archived = by_payment(rows, references)
        removed = left = 0
        for at in range(0, len(references), BATCH):
            moved, kept = await self._move(part, references[at : at + BATCH], archived)
            removed, left = removed + moved, left + kept
            self.crash_point("A3")
        await self._close(part, removed, left, by)
        return replace(done, removed=done.removed + removed, left=done.left + left)

    async def _next(self, after: str) -> str | None:
        return await in_transaction(self.store, lambda tx: tx.of(ArchiveRows).next_with_history(after))

    @retry_on_conflict
    async def _read(self, day: str, after: str, limit: int, before: datetime) -> tuple[list[str], str | None, History]:
        async with self.store.begin() as tx:
            ready, last = await tx.of(ArchiveRows).ready(after, f"{day}-{_LAST}", before, limit)
            return ready, last, await tx.of(ArchiveRows).histories(ready) if ready else {}

    @retry_on_conflict
    async def _begin(self, day: str) -> ArchivePart:
        now = self.clock.now()
        async with self.store.begin() as tx:
            return await tx.of(PartRows).begin(day, f"{day}/{self.entropy.id('arc', now)}", now)

    async def _finish(self, part: ArchivePart) -> None:
        try:
            async with self.store.begin() as tx:
                await tx.of(PartRows).finish(part)
        except Conflict:
            await self._delete_files(part)
            raise ArchiveTaken(AT_WORK) from None

    async def _give_up(self, part: ArchivePart) -> None:
        """Removes all that a command wrote for an unfinished part. Meanwhile its row is locked, so that a command that
        is still at it cannot finish it and remove what only the files have. Raises ArchiveTaken when one did."""
        async with self.store.begin() as tx:
            if not await tx.of(PartRows).give_up(part.number):
                raise ArchiveTaken(AT_WORK)
            await self._delete_files(part)

    async def _delete_files(self, part: ArchivePart) -> None:
        for name in (MANIFEST, *(f"{table}{SUFFIX}" for table in TABLES)):
            await self.reader.objects.delete(f"{part.folder}/{name}")

    @retry_on_conflict
    async def _move(
        self, part: ArchivePart, references: Sequence[str], archived: dict[str, History]
    ) -> tuple[int, int]:
        """The numbers of payments whose rows were removed, in this run or before, and left."""
        async with self.store.begin() as tx:
            gone = await tx.of(ArchiveRows).find_archived(references)
            ready = await tx.of(ArchiveRows).lock_ready([own for own in references if own not in gone])
            stored = by_payment(await tx.of(ArchiveRows).histories(ready), ready) if ready else {}
            same = [own for own in ready if stored[own] == archived[own]]
            calls = [
                (own, named_columns("provider_calls", row)["id"])
                for own in same
                for row in stored[own]["provider_calls"]
            ]
            await tx.of(ArchiveRows).move([remaining(own, part.number, stored[own]) for own in same], calls)
            self.crash_point("A4")
        for table in ("transitions", "attempts", "provider_calls"):
            count("rows_ended", table, by=sum(len(stored[own][table]) for own in same))
        return len(gone) + len(same), len(references) - len(gone) - len(same)

    @retry_on_conflict
    async def _begin_removal(self, part: ArchivePart, by: Actor) -> None:
        changes = {"payments": {"before": part.payments, "after": None}}
        async with self.store.begin() as tx:
            action = Action.ARCHIVE_BEGIN_REMOVE
            await self.record(tx, by, action, part.folder, changes)

    @retry_on_conflict
    async def _close(self, part: ArchivePart, removed: int, left: int, by: Actor) -> None:
        now = self.clock.now()
        changes = {"payments": {"before": removed + left, "after": left}}
        async with self.store.begin() as tx:
            await tx.of(PartRows).close(part.number, now)
            await self.record(tx, by, Action.ARCHIVE_REMOVE, part.folder, changes)
