"""Lists while payments arrive: no cursor passes one by, whenever its transaction commits."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from payagg_testing.builders import AN_ADMIN, DAY, a_business, a_key

from payagg.adapters.postgres.repositories.payment_search import LOOKED_AT
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.schemas.payments import TestPayment as PaymentOfTest
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import PaymentCursor, PaymentFilter
from payagg.domain.values import Environment
from tests.support.assembly import services_over
from tests.support.postgres_rules import more_roles
from tests.support.postgres_world import numbered, somebody_waits
from tests.support.receivers import until

OWN = PaymentFilter("biz_1", Environment.SANDBOX)
# One payment of the status in every so many, all of one merchant.
MANY = """
    INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence, created_at,
                          updated_at, expires_at, settled_at)
    SELECT 'PAY-20250131-' || lpad(n::text, 6, '0'), 'biz_1', 'SANDBOX', 100, 'NGN',
           CASE WHEN n %% %(every)s = 0 THEN 'REVERSED' ELSE 'SUCCESS' END, 1, at, at, at, at
    FROM generate_series(1, %(last)s) n, LATERAL (SELECT timestamptz '2025-01-31' + n * interval '1 s' AS at) instant
"""
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
            assert await tx.payment_search.page(sought, datetime.now(UTC), None, 1) == ([new], None)
        await slow.commit()
    assert await references(dating) == [new.reference, "PAY-20250131-SLOW00", old.reference]


@pytest.mark.rule("reports.1")
@pytest.mark.parametrize("act_as_first", [False, True])
async def test_what_another_role_of_ours_may_still_commit_is_waited_for_as_well(
    dating: PostgresStore, postgres: str, database_url: str, act_as_first: bool
) -> None:
    """The server does not say when its sessions began their transactions."""
    with more_roles(postgres, database_url, act_as_first=act_as_first) as (one, other):
        stores = [PostgresStore(url, pool_size=2, pgbouncer=False) for url in (database_url, one, other)]
        async with await psycopg.AsyncConnection.connect(one) as slow:
            await slow.execute(BY_HAND, ("PAY-20250131-SLOW00",))
            new, _ = await dating.add_payment(drawn(1))
            assert [await references(reading) for reading in stores] == [[]] * 3
            await slow.commit()
        assert [await references(reading) for reading in stores] == [[new.reference, "PAY-20250131-SLOW00"]] * 3
        for reading in stores:
            await reading.close()


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


@pytest.mark.rule("reports.1")
async def test_a_test_payment_that_waited_for_its_business_is_dated_when_it_is_stored(
    dating: PostgresStore, database_url: str
) -> None:
    async with dating.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.api_keys.add(a_key())
    payments = services_over(dating).payments
    async with await psycopg.AsyncConnection.connect(database_url) as busy:
        # It has no number, so lists wait for nothing.
        await busy.execute("LOCK TABLE businesses IN EXCLUSIVE MODE")
        waiting = asyncio.create_task(payments.initiate_test(PaymentOfTest(amount=500), a_business(), by=AN_ADMIN))
        await until(lambda: somebody_waits(database_url))
        quick, _ = await dating.add_payment(drawn(1))
        assert await references(dating) == [quick.reference]
    made = (await waiting).payment
    assert await references(dating) == [made.reference, quick.reference]
    stored = await dating.find_payment(made.reference)
    assert stored is not None
    assert (stored.expires_at, stored.expires_at - stored.created_at) == (made.expires_at, timedelta(hours=1))


@pytest.mark.rule("reports.1")
@pytest.mark.parametrize("limit", [1, 2, 3, 9])
async def test_what_a_clock_that_was_ahead_dated_is_listed_at_once(
    dating: PostgresStore, store: PostgresStore, database_url: str, limit: int
) -> None:
    old, _ = await dating.add_payment(drawn(1))
    ahead = [numbered(number, now=datetime.now(UTC) + number * DAY) for number in (2, 3)]
    for payment in ahead:
        await store.add_payment(payment)
    expected = [ahead[1].reference, ahead[0].reference, old.reference]
    async with await psycopg.AsyncConnection.connect(database_url) as slow:
        await slow.execute(BY_HAND, ("PAY-20250131-SLOW00",))
        await dating.add_payment(drawn(4))
        met: list[str] = []
        after: PaymentCursor | None = None
        while not met or after is not None:
            async with dating.begin() as tx:
                found, after = await tx.payment_search.page(OWN, datetime.now(UTC), after, limit)
            met += [payment.reference for payment in found]
    assert met == expected


@pytest.mark.rule("reports.1")
@pytest.mark.parametrize("wanted", [OWN, PaymentFilter()], ids=["of a merchant", "of all"])
@pytest.mark.parametrize(("every", "sizes"), [(3_000, [1, 0, 0]), (1_000, [2, 2, 0]), (9_999, [0, 0, 0])])
async def test_a_page_by_status_looks_at_so_many_payments_and_the_walk_meets_all(
    dating: PostgresStore, database_url: str, wanted: PaymentFilter, every: int, sizes: list[int]
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(MANY, {"every": every, "last": 3 * LOOKED_AT - 1_500})
    after: PaymentCursor | None = None
    met: list[list[str]] = []
    while not met or after is not None:
        async with dating.begin() as tx:
            asked = replace(wanted, status=Status.REVERSED)
            found, after = await tx.payment_search.page(asked, datetime.now(UTC), after, 20)
        met.append([payment.reference for payment in found])
    assert [len(page) for page in met] == sizes
    expected = [f"PAY-20250131-{number:06d}" for number in range(1, 3 * LOOKED_AT - 1_499) if number % every == 0]
    assert [reference for page in met for reference in page] == expected[::-1]
