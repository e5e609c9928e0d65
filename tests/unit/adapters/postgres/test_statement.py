"""What needs a transaction: a round trip more for each request that begins one to read."""

import pytest
from sqlalchemy import delete, select

from payagg.adapters.postgres.repositories import accounts, webhook_events
from payagg.adapters.postgres.schema.tables import payments as table
from payagg.adapters.postgres.statement import Statement


@pytest.mark.parametrize(
    "statement",
    [accounts.GET, webhook_events.EVENTS, webhook_events.EVENTS_OF_PAYMENT],
    ids=["a row", "events", "a payment's events"],
)
def test_what_only_reads_needs_no_transaction(statement: Statement) -> None:
    assert statement.reads


def test_what_locks_or_writes_needs_one() -> None:
    of = select(table.c.reference)
    locks = [of.with_for_update(key_share=key, read=read) for key in (False, True) for read in (False, True)]
    assert [
        one for one in (*locks, select(of.with_for_update().subquery()), delete(table)) if Statement(one).reads
    ] == []
