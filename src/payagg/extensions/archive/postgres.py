"""Archived payments as rows, the rows that move to the archive, and its parts, each a folder of files."""

# ruff: noqa: S608 - only our own column names and numbers are put into the texts

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import msgspec
from sqlalchemy import bindparam, update

from payagg.adapters.postgres.repositories.payments import PART
from payagg.adapters.postgres.repositories.rows import PostgresRepository, parameters
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.outside import Conflict
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.extensions.archive.tables import TABLES, History

# The one for each payment that has any.
NEXT = Statement("SELECT reference FROM transitions WHERE reference > :after ORDER BY reference LIMIT 1")
# What keeps a payment's history here. Each is a look-up by reference: OFFSET keeps it apart, and words that fit no
# partial index keep the server from reading all that is unclosed or to be asked about once for each payment.
_IS_READY = """p.settled_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM events WHERE reference = p.reference OFFSET 0)
    AND NOT EXISTS (SELECT FROM deliveries WHERE reference = p.reference OFFSET 0)
    AND NOT EXISTS (SELECT FROM anomalies WHERE reference = p.reference AND status || '' <> 'CLOSED' OFFSET 0)
    AND NOT EXISTS (
        SELECT FROM attempts WHERE reference = p.reference AND coalesce(next_ask_at, '-infinity') > '-infinity' OFFSET 0
    )"""


@cache
def _ready(limit: int) -> Statement:
    return Statement(
        f"""
WITH step AS MATERIALIZED (
    SELECT reference FROM transitions WHERE reference > :after AND reference <= :until AND sequence = 1
    ORDER BY reference LIMIT {limit:d}
)
SELECT step.reference, coalesce(found.is_ready, false) FROM step LEFT JOIN LATERAL (
    SELECT p.created_at < :before AND {_IS_READY} AS is_ready FROM payments p WHERE p.reference = step.reference LIMIT 1
) found ON true ORDER BY step.reference""",
        reads=True,
    )


LOCK = Statement("SELECT reference FROM payments WHERE reference = ANY(:references) ORDER BY reference FOR UPDATE")
ARE_READY = Statement(f"""
SELECT asked.reference FROM unnest(CAST(:references AS text[])) AS asked (reference)
JOIN LATERAL (
    SELECT {_IS_READY} AS is_ready FROM payments p WHERE p.reference = asked.reference LIMIT 1
) found ON is_ready
ORDER BY asked.reference""")
HISTORIES = {
    table: Statement(f"SELECT {', '.join(columns)} FROM {table} WHERE reference = ANY(:references) ORDER BY 1, 2")
    for table, columns in TABLES.items()
}
ADD = Statement("""
INSERT INTO archived_payments (reference, part, attempts, paid)
SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row (reference text, part int, attempts text, paid text)
ORDER BY reference
""")
REMOVE = [Statement(f"DELETE FROM {table} WHERE reference = ANY(:references)") for table in ("transitions", "attempts")]
REMOVE_CALLS = Statement("""
DELETE FROM provider_calls c USING unnest(CAST(:references AS text[]), CAST(:ids AS text[])) AS own (reference, id)
WHERE c.reference = own.reference AND c.id = own.id
""")
ARCHIVED = Statement("SELECT reference FROM archived_payments WHERE reference = ANY(:references)")


class ArchiveRows(PostgresRepository):
    """The archived part of payments: transitions, attempts and provider calls."""

    async def next_with_history(self, after: str) -> str | None:
        """The first reference behind `after` whose history is still here."""
        found: str | None = await self._connection.value(NEXT, after=after)
        return found

    async def ready(self, after: str, until: str, before: datetime, limit: int) -> tuple[list[str], str | None]:
        """Looks at the next `limit` payments with a history here, after `after` and up to `until` by reference; returns
        those that may be archived and the last one looked at, None past the end. A payment may be archived when it is
        final, older than that instant, and has no event, delivery, open anomaly or status check left."""
        rows = await self._connection.rows(_ready(limit), after=after, until=until, before=before)
        return [reference for reference, is_ready in rows if is_ready], rows[-1][0] if rows else None

    async def lock_ready(self, references: Sequence[str]) -> list[str]:
        """Those of them that may be archived, in order, locked."""
        own = {"references": list(references)}
        _, ready = await self._connection.all((LOCK, own), (ARE_READY, own))
        return [reference for (reference,) in ready]

    async def histories(self, references: Sequence[str]) -> History:
        """Their rows by table as in TABLES, sorted by key."""
        own = {"references": list(references)}
        found = await self._connection.all(*((statement, own) for statement in HISTORIES.values()))
        return {table: [tuple(row) for row in rows] for table, rows in zip(HISTORIES, found, strict=True)}

    async def move(self, payments: Sequence[ArchivedPayment], calls: Sequence[tuple[str, str]]) -> None:
        """Removes the transitions and attempts of these locked payments, and these calls (reference, id)."""
        rows = [
            {
                "reference": one.reference,
                "part": one.part,
                "attempts": ",".join(
                    f"{gateway} {state.value} {paid_by or ''}" for gateway, state, paid_by in one.attempts
                ),
                "paid": one.paid,
            }
            for one in payments
        ]
        references = [one.reference for one in payments]
        self._connection.send(ADD, rows=msgspec.json.encode(rows).decode())
        for statement in REMOVE:
            self._connection.send(statement, references=references)
        self._connection.send(
            REMOVE_CALLS, references=[reference for reference, _ in calls], ids=[own for _, own in calls]
        )

    async def find_archived(self, references: Sequence[str]) -> set[str]:
        """Those of them that are archived and removed."""
        return {reference for (reference,) in await self._connection.rows(ARCHIVED, references=list(references))}


BEGIN_PART = Statement("""
INSERT INTO archive_parts (day, folder, started_at, payments)
VALUES (:day, :folder, CAST(:started_at AS timestamptz), 0) RETURNING number
""")
_FINISHED = (
    update(PART.table)
    .where(PART.table.c.number == bindparam("number"), PART.table.c.manifest.is_(None))
    .values(parameters("payments", "last_reference", "manifest"))
    .returning(PART.table.c.number)
    .cte("finished")
)
FINISH_PART = Statement(must_find(_FINISHED))
GIVE_UP_PART = Statement("DELETE FROM archive_parts WHERE number = :number AND manifest IS NULL RETURNING number")
PARTS = PART.query("WHERE day = :day AND removed_at IS NULL ORDER BY number")
UNFINISHED_DAYS = Statement("SELECT DISTINCT day FROM archive_parts WHERE removed_at IS NULL ORDER BY day")
CLOSE_PART = Statement("UPDATE archive_parts SET removed_at = CAST(:now AS timestamptz) WHERE number = :number")


class PartRows(PostgresRepository):
    """Parts of the archive, each a folder of files."""

    async def begin(self, day: str, folder: str, now: datetime) -> ArchivePart:
        number = await self._connection.value(BEGIN_PART, day=day, folder=folder, started_at=now)
        assert number is not None
        return ArchivePart(number, day, folder, now)

    async def finish(self, part: ArchivePart) -> None:
        """Marks the part as written. Raises Conflict when it was given up."""
        own = {name: getattr(part, name) for name in ("number", "payments", "last_reference", "manifest")}
        self._connection.send(FINISH_PART, or_else=Conflict("the part was given up"), **own)

    async def give_up(self, number: int) -> bool:
        """Deletes the row of an unwritten part; False when it is written or gone. Until the transaction's end nobody
        finishes it."""
        return await self._connection.value(GIVE_UP_PART, number=number) is not None

    async def of_day(self, day: str) -> list[ArchivePart]:
        """The day's parts whose rows are still here, by number."""
        return PART.all(await self._connection.rows(PARTS, day=day))

    async def unfinished_days(self) -> list[str]:
        """Days with a part whose rows are still here, in order."""
        return [day for (day,) in await self._connection.rows(UNFINISHED_DAYS)]

    async def close(self, number: int, now: datetime) -> None:
        """Marks the part as removed as far as it may be."""
        self._connection.send(CLOSE_PART, number=number, now=now)
