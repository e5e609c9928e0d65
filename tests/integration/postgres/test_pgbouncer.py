"""The product through a real PgBouncer in transaction mode: several processes' worth of clients on few connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from payagg.adapters.postgres.connections import connector
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from tests.support.assembly import named, services_over
from tests.support.http_world import Api, Shop, an_api
from tests.support.pgbouncer import a_pgbouncer, give_settings
from tests.support.postgres_world import count
from tests.support.processes import payagg, serving
from tests.support.receivers import a_receiver

STORES = 3
SERVER_CONNECTIONS = 4
JOURNEYS = 16  # in each store, at once: more than the pools hold, and far more than the server has connections


@pytest.fixture
async def bouncer(database_url: str, tmp_path: Path) -> AsyncIterator[str]:
    async with a_pgbouncer(database_url, tmp_path, SERVER_CONNECTIONS) as url:
        yield url


@asynccontextmanager
async def processes(url: str) -> AsyncIterator[list[Api]]:
    """The whole product several times, each with a pool of its own, as so many processes have."""
    async with AsyncExitStack() as stack:
        apis = []
        for _ in range(STORES):
            store = PostgresStore(url, pool_size=10, pgbouncer=True)
            stack.push_async_callback(store.close)
            apis.append(await stack.enter_async_context(an_api(services_over(store))))
        yield apis


async def journey(api: Api, shop: Shop) -> None:
    """One payment from its start to SUCCESS, with every kind of statement on the way."""
    own, reference = shop.as_sandbox, (await api.initiate(shop))["reference"]
    payment, public = f"/payments/{reference}", f"/public/payments/{reference}"
    assert (await api.get(payment, own))["status"] == "INITIATED"
    silent = {"gatewaySlug": "sandbox", "cardNumber": "4000000000000119"}
    assert (await api.send("POST", f"{public}/process", **silent))["status"] == "PENDING"
    await api.send("POST", f"{payment}/simulate", own, outcome="SUCCESS")
    assert (await api.get(f"{public}/verify"))["status"] == "SUCCESS"


async def test_everything_works_through_pgbouncer_in_transaction_mode(bouncer: str, database_url: str) -> None:
    async with processes(bouncer) as apis, a_receiver() as receiver:
        shop = await apis[0].open_shop()
        for api in apis:
            await seed_gateways(api.services.gateways, "builtin", named("provider_a", "provider_b"))
        await apis[0].add_endpoint(shop, receiver.origin)
        await asyncio.gather(*(journey(api, shop) for api in apis for _ in range(JOURNEYS)))
        expected = STORES * JOURNEYS * 2  # PENDING and SUCCESS
        for _ in range(expected):
            if not sum(await asyncio.gather(*(api.services.dispatcher.run_once() for api in apis))):
                break
        assert len(receiver.received) == expected
    assert await count(database_url, "deliveries WHERE status = 'DELIVERED'") == expected
    assert await count(database_url, "payments WHERE status = 'SUCCESS'") == STORES * JOURNEYS


async def test_the_commands_and_a_server_work_through_pgbouncer(bouncer: str) -> None:
    def run() -> None:
        for command in (("migrate",), ("doctor",), ("business", "create", "--name", "Ada's", "--owner", "ada")):
            done = payagg(*command, PAYAGG_DATABASE_URL=bouncer, PAYAGG_PGBOUNCER="true")
            assert done.returncode == 0, done.stderr
        with serving(bouncer, PAYAGG_PGBOUNCER="true"):
            pass

    await asyncio.to_thread(run)


async def test_an_operator_gives_the_role_what_a_session_without_pgbouncer_asks_for(database_url: str) -> None:
    # The driver sets the last three in each session; PgBouncer passes them on.
    ask = """SELECT name, setting FROM pg_settings WHERE source IN ('client', 'database user')
             AND name NOT IN ('application_name', 'client_encoding', 'TimeZone') ORDER BY name"""
    pool = StatementPool(connector(database_url, pgbouncer=False), 1)
    ours = await pool.run(Statement(ask, reads=True))
    await pool.close()
    with psycopg.connect(database_url, autocommit=True) as connection:
        give_settings(connection, connection.info.dbname)
    with psycopg.connect(database_url) as connection:
        assert [*map(tuple, ours)] == connection.execute(ask.encode()).fetchall()
