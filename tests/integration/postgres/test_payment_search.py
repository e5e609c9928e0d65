"""Lists while payments arrive: no cursor passes one by, whenever its transaction commits."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.payment import Payment
from payagg.domain.payment_search import PaymentCursor, PaymentFilter
from payagg.domain.values import Environment
from tests.support.postgres_world import numbered

OWN = PaymentFilter("biz_1", Environment.SANDBOX)
BY_HAND = """
    INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence, created_at,
                          updated_at, expires_at)
    SELECT %s, 'biz_1', 'SANDBOX', 100, 'NGN', 'INITIATED', 0, at, at, at + interval '1 hour'
    FROM (SELECT clock_timestamp() AS at) AS moment
"""


@pytest.fixture
async def dating(database_url: str) -> AsyncIterator[PostgresStore]:
    """As a server makes it, where the clock is the database's."""
    store = PostgresStore(database_url, pool_size=6, pgbouncer=False, dates_payments=True)
    yield store
    await store.close()


def drawn(number: int) -> Payment:
    return numbered(number, now=datetime.now(UTC))


async def references(store: PostgresStore, after: PaymentCursor | None = None) -> list[str]:
    async with store.begin() as tx:
        return [payment.reference for payment in (await tx.payment_search.page(OWN, datetime.now(UTC), after, 100))[0]]


@pytest.mark.rule("reports.1")
async def test_while_an_earlier_payment_may_still_commit_no_later_one_is_listed(
    dating: PostgresStore, database_url: str
) -> None:
    old, _ = await dating.add_payment(drawn(1))
    async with await psycopg.AsyncConnection.connect(database_url) as slow:
        await slow.execute(BY_HAND, ("PAY-20250131-SLOW00",))
        new, _ = await dating.add_payment(drawn(2))
        assert await references(dating) == [old.reference]
        async with dating.begin() as tx:
            sought = replace(OWN, reference=new.reference)
            assert await tx.payment_search.page(sought, datetime.now(UTC), None, 1) == ([new], False)
        await slow.commit()
    assert await references(dating) == [new.reference, "PAY-20250131-SLOW00", old.reference]


@pytest.mark.rule("reports.1")
async def test_a_payment_that_waited_to_be_stored_is_dated_when_it_is(dating: PostgresStore) -> None:
    waiting = drawn(1)
    await asyncio.sleep(0.05)
    quick, _ = await dating.add_payment(drawn(2))
    assert await references(dating) == [quick.reference]
    late, created = await dating.add_payment(waiting)
    assert created
    assert late.created_at > quick.created_at
    assert late.expires_at - late.created_at == timedelta(hours=1)
    assert await dating.find_payment(late.reference) == late
    assert await references(dating) == [late.reference, quick.reference]
