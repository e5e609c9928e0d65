"""Postgres keeps every promise about payments whose history leaves for the archive."""

from payagg.domain.archived import ArchivedPayment
from payagg.domain.attempt import AttemptState
from tests.contracts.archive import ArchiveContract, a_part, named
from tests.contracts.database import Database
from tests.support.postgres_world import execute


class TestArchiveOnPostgres(ArchiveContract):
    """Each test has an empty database of its own."""

    async def test_what_was_archived_before_ids_were_kept_has_none(self, db: Database, database_url: str) -> None:
        part = await a_part(db)
        row = [named("000001"), part.number, "provider_a REFUSED,provider_b HANDED_OFF"]
        execute(database_url, "INSERT INTO archived_payments VALUES (%s, %s, %s)", values=row)
        expected = (("provider_a", AttemptState.REFUSED, None), ("provider_b", AttemptState.HANDED_OFF, None))
        assert await db.payments.archived(named("000001")) == (
            ArchivedPayment(named("000001"), part.number, expected, None),
            part,
        )
