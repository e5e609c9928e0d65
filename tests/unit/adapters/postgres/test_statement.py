"""What needs a transaction: a round trip more for each request that begins one to read."""

from types import MappingProxyType

import pytest
from payagg_testing.builders import NOW

from payagg.adapters.postgres.repositories import accounts, webhook_events
from payagg.adapters.postgres.statement import Statement


@pytest.mark.parametrize(
    "statement",
    [accounts.GET, webhook_events.EVENTS, webhook_events.EVENTS_OF_PAYMENT],
    ids=["a row", "events", "a payment's events"],
)
def test_what_only_reads_needs_no_transaction(statement: Statement) -> None:
    assert statement.reads


def test_what_locks_or_writes_needs_one() -> None:
    of = "SELECT id FROM businesses"
    locks = [f"{of} FOR {strength}" for strength in ("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE")]
    others = [f"SELECT id FROM ({of}\nFOR UPDATE SKIP LOCKED) AS own", "DELETE FROM businesses"]
    assert [one for one in (*locks, *others) if Statement(one).reads] == []


def test_values_stand_in_the_order_of_their_names_and_some_are_written_here() -> None:
    statement = Statement(
        "UPDATE anomalies SET at = CAST(:at AS timestamptz), details = CAST(:details AS jsonb), source = :source"
        " WHERE id = :id AND source <> :source AND at::text <> '12\\:00'"
    )
    assert statement.sql == (
        b"UPDATE anomalies SET at = CAST($1 AS timestamptz), details = CAST($2 AS jsonb), source = $3"
        b" WHERE id = $4 AND source <> $3 AND at::text <> '12:00'"
    )
    values = {"id": "anm_1", "at": NOW, "details": MappingProxyType({"sum": 2**64}), "source": "verify", "other": 1}
    assert statement.order_values(values) == [
        "2025-01-31T12:00:00Z",
        '{"sum": 18446744073709551616}',
        "verify",
        "anm_1",
    ]
    assert statement.order_values({**values, "at": None, "details": '{"a": 1}'})[:2] == [None, '{"a": 1}']
    with pytest.raises(KeyError):
        statement.order_values({"id": "anm_1"})
