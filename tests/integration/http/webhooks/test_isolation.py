"""A dead merchant delays nobody. On Postgres; what the queue's statements cost is in test_plans."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.application.webhooks.dispatcher import CONCURRENT, FAILING_MAX, Dispatcher
from tests.integration.http.webhooks.outbox_rows import load_deliveries, load_endpoints
from tests.support.assembly import KEYS
from tests.support.receivers import until


@dataclass
class Merchants:
    """A sender: the dead address never answers until told, the others answer at once."""

    release: asyncio.Event = field(default_factory=asyncio.Event)
    healthy: int = 0
    dead: int = 0
    waiting: int = 0
    most_waiting: int = 0

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> DeliveryAttemptResult:
        if "dead" not in url:
            await asyncio.sleep(0)
            self.healthy += 1
            return DeliveryAttemptResult(200, None, 1)
        self.dead += 1
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await self.release.wait()
        self.waiting -= 1
        return DeliveryAttemptResult(None, "no answer in time", 15_000)


@asynccontextmanager
async def delivering(*stores: PostgresStore) -> AsyncIterator[Merchants]:
    """The merchants that a worker on each store delivers to."""
    merchants, stop = Merchants(), asyncio.Event()
    vault, sender = AesVault(KEYS), cast(HttpSender, merchants)
    dispatchers = [Dispatcher(store, SystemClock(), SystemEntropy("PAY"), vault, sender) for store in stores]
    running = [asyncio.create_task(dispatcher.run(stop)) for dispatcher in dispatchers]
    try:
        yield merchants
    finally:
        stop.set()
        merchants.release.set()
        await asyncio.gather(*running)


@pytest.mark.rule("webhooks.14")
async def test_deliveries_to_a_dead_endpoint_delay_no_other(database_url: str, store: PostgresStore) -> None:
    """All healthy ones arrive while the dead endpoint still holds its first five tries, with two workers running."""
    load_endpoints(database_url, "whe_dead", 1, "https://dead.example/")
    load_endpoints(database_url, "whe_ok", 500, "https://ok.example/")
    load_deliveries(database_url, "whe_dead", 4_000, 1, "now() - interval '1 hour'")
    load_deliveries(database_url, "whe_ok", 2_000, 500, "now()")
    other = PostgresStore(database_url, pool_size=5, pgbouncer=False)
    async with delivering(store, other) as merchants:
        await until(lambda: merchants.healthy == 2_000)
        assert merchants.dead == merchants.most_waiting == 5
    await other.close()
    assert merchants.healthy == 2_000


async def test_endpoints_that_long_fail_leave_half_the_tries_to_others(database_url: str, store: PostgresStore) -> None:
    load_endpoints(database_url, "whe_dead", CONCURRENT + 50, "https://dead.example/")
    load_endpoints(database_url, "whe_ok", 50, "https://ok.example/")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE webhook_endpoints SET failing_since = now() WHERE url LIKE '%dead%'")
    load_deliveries(database_url, "whe_dead", CONCURRENT + 50, CONCURRENT + 50, "now() - interval '1 hour'")
    load_deliveries(database_url, "whe_ok", 500, 50, "now()")
    async with delivering(store) as merchants:
        await until(lambda: merchants.healthy == 500 and merchants.dead == FAILING_MAX)
        assert merchants.most_waiting == FAILING_MAX < CONCURRENT
        merchants.release.set()
        await until(lambda: merchants.dead == CONCURRENT + 50)
