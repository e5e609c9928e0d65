"""What only the Postgres store does: callers of one moment share a statement and keep their own answers."""

import asyncio
from datetime import timedelta
from itertools import product

import psycopg
from payagg_testing.builders import NOW, a_business, a_key

from payagg.adapters.postgres.errors import RuleBroken
from payagg.adapters.postgres.migrations import is_current
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import KeyStateChanged, ReferenceTaken
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment
from tests.support.postgres_world import count, numbered, together


async def test_a_row_the_database_refuses_fails_alone(store: PostgresStore, database_url: str) -> None:
    payments = [numbered(n, idempotency_key=f"k{n}") for n in range(20)]
    payments[7] = with_changes(payments[7], customer_name="zero \x00 byte")
    payments[11] = with_changes(payments[11], amount=1, customer_email="ada@example.com")
    payments[13] = with_changes(payments[13], customer_name="half \ud800 character")
    answers = await together(store, *payments)
    for number, (payment, answer) in enumerate(zip(payments, answers, strict=True)):
        if number in (7, 13):
            assert isinstance(answer, Refusal)
            assert answer.code is ErrorCode.VALIDATION_ERROR
        elif number == 11:
            assert isinstance(answer, RuleBroken)
            assert ("amount_in_bounds" in str(answer), "ada" in str(answer)) == (True, False)
        else:
            assert answer == (payment, True)
    assert await count(database_url, "payments") == 17
    assert await count(database_url, "idempotency_keys") == 17


async def test_a_taken_reference_fails_alone_and_leaves_no_key_behind(store: PostgresStore, database_url: str) -> None:
    await store.add_payment(numbered(3))
    answers = await together(store, *(numbered(n, idempotency_key=f"k{n}") for n in range(5)))
    assert isinstance(answers.pop(3), ReferenceTaken)
    assert [created for _, created in answers] == [True] * 4
    assert await count(database_url, "idempotency_keys") == 4


async def test_a_cached_key_that_has_changed_fails_alone(store: PostgresStore, database_url: str) -> None:
    business, keys = a_business(), [a_key(f"key_{n}") for n in range(4)]
    async with store.begin() as tx:
        await tx.businesses.add(business)
        for key in keys:
            await tx.api_keys.add(key)
        await tx.api_keys.save(keys[2].revoke(NOW))
    cached = [None, *(KeyHolder(key, business) for key in keys)]
    payments = [numbered(n, idempotency_key=f"k{n}") for n in range(5)]
    answers = await asyncio.gather(*map(store.add_payment, payments, cached), return_exceptions=True)
    assert isinstance(answers.pop(3), KeyStateChanged)
    assert answers == [(payment, True) for payment in payments if payment is not payments[3]]
    assert await count(database_url, "idempotency_keys") == 4


async def test_one_reference_drawn_twice_at_one_moment_goes_to_one_caller(store: PostgresStore) -> None:
    answers = await together(store, *(numbered(1, idempotency_key=f"k{n}", amount=1000 + n) for n in range(4)))
    won = [answer for answer in answers if not isinstance(answer, ReferenceTaken)]
    assert len(won) == 1
    assert won[0][1]
    assert (await store.find_payment(won[0][0].reference)) == won[0][0]


async def test_a_repeated_key_gets_the_original_whoever_asks_beside_it(store: PostgresStore) -> None:
    original = numbered(1, idempotency_key="order-1", amount=1000)
    await store.add_payment(original)
    other = numbered(3, idempotency_key="order-2")
    repeated, fresh = await together(store, numbered(2, idempotency_key="order-1", amount=2000), other)
    assert repeated == (original, False)
    assert fresh == (other, True)


async def test_one_key_in_two_businesses_and_environments_makes_a_payment_in_each(
    store: PostgresStore, database_url: str
) -> None:
    other = PostgresStore(database_url, pool_size=8, pgbouncer=False)
    places = list(product(("biz_1", "biz_2"), Environment)) * 8
    payments = [
        numbered(n, business_id=business, environment=environment, idempotency_key="order-1")
        for n, (business, environment) in enumerate(places)
    ]
    answers = await asyncio.gather(*((store, other)[n % 2].add_payment(one) for n, one in enumerate(payments)))
    await other.close()
    assert [created for _, created in answers].count(True) == 4
    assert [(kept.business_id, kept.environment) for kept, _ in answers] == places
    assert len({kept.reference for kept, _ in answers}) == 4


async def test_a_key_that_cannot_be_kept_is_refused_alone(store: PostgresStore) -> None:
    original = numbered(1, idempotency_key="order-1")
    await store.add_payment(original)
    keys = ("a\x00b", "order-1", "\ud800", "order-2")
    asked = (store.find_original("biz_1", Environment.SANDBOX, key) for key in keys)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for refused in (answers[0], answers[2]):
        assert isinstance(refused, Refusal)
        assert refused.code is ErrorCode.VALIDATION_ERROR
    assert (answers[1], answers[3]) == (original, None)


async def test_lookups_of_one_moment_each_get_their_own(store: PostgresStore) -> None:
    business, good, revoked = a_business(), a_key("key_1"), a_key("key_2")
    async with store.begin() as tx:
        await tx.businesses.add(business)
        for key in (good, revoked):
            await tx.api_keys.add(key)
        await tx.api_keys.save(revoked.revoke(NOW))
    payments = [numbered(n) for n in range(10)]
    await together(store, *payments)
    asked = [payments[n % 10].reference for n in range(30)] + ["PAY-20250131-ABSENT"]
    cached = [None, KeyHolder(good, business), KeyHolder(revoked, business)]
    finding = (store.find_payment(reference, cached[n % 3]) for n, reference in enumerate(asked))
    found = await asyncio.gather(*finding, return_exceptions=True)
    for n, answer in enumerate(found):
        if cached[n % 3] is cached[2]:
            assert isinstance(answer, KeyStateChanged)
        else:
            assert answer == (payments[n % 10] if n < 30 else None)


async def test_hits_of_many_callers_are_counted_exactly_and_old_buckets_go_away(
    store: PostgresStore, database_url: str
) -> None:
    limit = RateLimit(25)
    answers = await asyncio.gather(*(store.count_hit("a", NOW, limit) for _ in range(40)))
    assert answers.count(None) == 25
    assert set(answers) == {None, NOW + limit.window}
    assert await store.count_hit("b", NOW, limit) is None
    assert await count(database_url, "rate_hits") == 2
    assert await store.count_hit("c", NOW + 5 * limit.window, limit) is None
    assert await count(database_url, "rate_hits") == 1


async def test_the_next_release_s_schema_will_do_and_an_older_one_or_none_will_not(
    store: PostgresStore, database_url: str, postgres: str
) -> None:
    empty = PostgresStore(postgres, pool_size=1, pgbouncer=False)
    assert not await empty.is_current()
    await empty.close()
    assert await store.is_current()
    for versions, will_do in ((["9999"], True), (["0001"], False), (["0001", "9999"], False), ([], False)):
        with psycopg.connect(database_url) as connection:
            connection.execute("DELETE FROM alembic_version")
            for version in versions:
                connection.execute("INSERT INTO alembic_version VALUES (%s)", (version,))
        assert await store.is_current() is will_do
        assert is_current(database_url) is will_do


async def test_the_store_works_without_prepared_statements(database_url: str) -> None:
    store = PostgresStore(database_url, pool_size=1, pgbouncer=True)
    for number in range(8):
        assert await store.add_payment(numbered(number)) == (numbered(number), True)
    async with store.begin() as tx:
        assert await tx.payments._connection.value(Statement("SELECT count(*) FROM pg_prepared_statements")) == 0
    assert (await store.now()).utcoffset() == timedelta(0)
    await store.close()
