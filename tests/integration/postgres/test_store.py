"""What only the Postgres store does: callers of one moment share a statement and keep their own answers, and a failing
database loses and doubles nothing."""

import asyncio
from datetime import timedelta
from itertools import product
from typing import Any

import psycopg
import pytest
from payagg_testing.builders import NOW, a_business, a_key
from payagg_testing.network_faults import Blackhole, DropReply

from payagg.adapters.postgres import pool
from payagg.adapters.postgres.errors import RuleBroken
from payagg.adapters.postgres.migrations import is_current
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import Conflict, KeyStateChanged, ReferenceTaken, Unavailable
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment
from tests.contracts.webhooks import an_inbound_event
from tests.support.postgres_world import by_proxy, count, execute, numbered, together


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


async def test_what_is_taken_repeated_or_not_allowed_is_told_its_caller_alone(
    store: PostgresStore, database_url: str
) -> None:
    business, keys = a_business(), [a_key(f"key_{n}") for n in range(2)]
    async with store.begin() as tx:
        await tx.businesses.add(business)
        for key in keys:
            await tx.api_keys.add(key)
        await tx.api_keys.save(keys[1].revoke(NOW))
    original = numbered(1, idempotency_key="order-1", amount=1000)
    await together(store, original, numbered(2))
    active, revoked = (KeyHolder(key, business) for key in keys)
    payments = [numbered(n, idempotency_key=f"k{n}") for n in range(2, 6)]
    payments += [numbered(6, idempotency_key="order-1", amount=2000)]
    payments += [numbered(7, idempotency_key=f"drawn {n}", amount=1000 + n) for n in range(3)]
    cached = [None, revoked, active, *[None] * 5]
    answers = await asyncio.gather(*map(store.add_payment, payments, cached), return_exceptions=True)
    assert isinstance(answers[0], ReferenceTaken)
    assert isinstance(answers[1], KeyStateChanged)
    assert answers[2:5] == [(payments[2], True), (payments[3], True), (original, False)]
    [won] = [answer for answer in answers[5:] if not isinstance(answer, ReferenceTaken)]
    assert won == (await store.find_payment(payments[-1].reference), True)
    assert await count(database_url, "idempotency_keys") == 4  # none of who was refused


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
        execute(database_url, "DELETE FROM alembic_version")
        for version in versions:
            execute(database_url, f"INSERT INTO alembic_version VALUES ('{version}')")
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


@pytest.mark.parametrize(("cached", "key"), [(None, None), (KeyHolder(a_key(), a_business()), "order")])
async def test_payments_whose_answer_is_lost_are_found_again_as_the_callers_own(
    database_url: str, store: PostgresStore, key: str | None, cached: KeyHolder | None
) -> None:
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.api_keys.add(a_key())
    payments = [numbered(n, idempotency_key=key and f"{key}-{n}") for n in range(5)]
    async with by_proxy(database_url) as (proxy, url):
        proxy.impose(DropReply(after=b"INSERT INTO payments"), times=1)
        store = PostgresStore(url, pool_size=2, pgbouncer=False)
        assert await together(store, *payments, cached=cached) == [(payment, True) for payment in payments]
        await store.close()
    assert await count(database_url, "payments") == 5


async def test_connections_to_a_server_that_takes_no_writes_are_given_up(
    store: PostgresStore, database_url: str
) -> None:
    """As after a switchover that left a way to the old primary open: the next try finds the new one, and writes do not
    fail for as long as the connections last."""

    async def allow(is_writable: bool) -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            name = connection.info.dbname
            await connection.execute("SET default_transaction_read_only = off")
            only = "off" if is_writable else "on"
            await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {only}".encode())

    await allow(False)
    for number in range(3):
        with pytest.raises(Unavailable, match="25006, ReadOnlySqlTransaction"):
            await store.add_payment(numbered(number))
    with pytest.raises((Unavailable, Conflict)):
        async with store.begin() as tx:
            await tx.businesses.add(a_business())
    await allow(True)
    for number in range(3):
        await store.add_payment(numbered(number))
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
    assert await count(database_url, "payments") == 3


async def test_a_database_that_is_down_is_unavailable(tmp_path: Any) -> None:
    store = PostgresStore(f"postgresql://payagg@/payagg?host={tmp_path}", pool_size=1, pgbouncer=False)
    for call in (store.now, store.is_current, lambda: store.find_payment("PAY-20250131-000001")):
        with pytest.raises(Unavailable):
            await call()
    with pytest.raises(Unavailable):
        await store.add_payment(numbered(1))
    with pytest.raises(Unavailable):
        async with store.begin():
            pytest.fail("there is no transaction to be in")
    await store.close()


@pytest.mark.parametrize("url", ["", "mysql://h/db", "postgresql://h/db?nonsense=1", "not a url with secret-word"])
async def test_a_wrong_url_is_unavailable_and_not_repeated(url: str) -> None:
    with pytest.raises(Unavailable) as unavailable:
        PostgresStore(url, pool_size=1, pgbouncer=False)
    assert "secret-word" not in str(unavailable.value)


async def test_a_database_that_says_nothing_is_unavailable_in_time_and_used_again_at_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ANSWER_WAIT", 0.5)
    async with by_proxy(database_url) as (proxy, url):
        store = PostgresStore(url, pool_size=3, pgbouncer=False)

        async def waits_inside_a_transaction() -> None:
            async with store.begin() as tx:
                assert await tx.businesses.get("biz_1") is None
                proxy.impose(Blackhole())
                await tx.businesses.add(a_business())

        async with asyncio.timeout(60):  # or for ever
            for call in (
                waits_inside_a_transaction,
                store.now,
                store.is_current,
                lambda: store.add_payment(numbered(1)),
            ):
                proxy.heal()
                await store.now()
                if call is not waits_inside_a_transaction:
                    proxy.impose(Blackhole())
                with pytest.raises(Unavailable):
                    await call()
            with pytest.raises(Unavailable):  # a new connection has no answer either
                await store.now()
            proxy.heal()
            assert await store.add_payment(numbered(2)) == (numbered(2), True)
            proxy.impose(Blackhole())
            await store.close()


async def test_a_providers_event_is_kept_while_what_is_counted_waits_for_a_lock(
    store: PostgresStore, database_url: str
) -> None:
    limit = RateLimit(100)
    await store.count_hit("in:1", NOW, limit)
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT FROM rate_hits FOR UPDATE")
        hit = asyncio.create_task(store.count_hit("in:1", NOW, limit))
        async with asyncio.timeout(5):
            assert await store.keep_event(an_inbound_event("inb_1", b"a" * 32))
        assert not hit.done()
        await other.rollback()
    assert await hit is None
