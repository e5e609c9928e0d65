"""What is left here of payments whose history is in an archive."""

from sqlalchemy import bindparam, select

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.rows import RowMap
from payagg.adapters.postgres.schema.reports import archive_parts, archived_payments
from payagg.adapters.postgres.statement import Statement
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState

PART = RowMap(ArchivePart, archive_parts)
FIND = Statement(
    select(archived_payments.c.attempts, archived_payments.c.paid, *PART.columns)
    .join(archive_parts, archive_parts.c.number == archived_payments.c.part)
    .where(archived_payments.c.reference == bindparam("reference"))
)


class PostgresArchivedPayments:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection

    async def find(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None:
        row = await self._connection.row(FIND, reference=reference)
        if row is None:
            return None
        attempts, paid, *own = row
        # One that was written before ids were kept has two words; an id may have spaces, and never a comma.
        words = (f"{one} ".split(" ", 2) for one in attempts.split(",") if one)
        part = PART.load(own)
        tried = tuple((gateway, AttemptState(state), paid_by.strip() or None) for gateway, state, paid_by in words)
        return ArchivedPayment(reference, part.number, tried, paid), part
