"""What a failing database means to a caller, and that nothing is lost or doubled by it."""

import asyncio
from typing import Any

import psycopg
import pytest
from payagg_testing.builders import NOW, a_business, a_key
from payagg_testing.network_faults import Blackhole, DropReply

from payagg.adapters.postgres import pool
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.rate_limit import RateLimit
from tests.contracts.webhooks import an_inbound_event
from tests.support.postgres_world import by_proxy, count, numbered, together


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
