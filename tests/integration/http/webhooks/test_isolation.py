"""A dead merchant delays nobody, and what waits for tomorrow costs today's claims nothing. On Postgres."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from payagg_testing.builders import a_delivery, an_event, an_id
from psycopg import sql

from payagg.adapters.postgres.delivery_queue.statements import (
    CLAIM,
    CLAIM_SUSPECT,
    FINISH,
    OLDEST,
    PURGE_DELIVERIES,
    RELEASE,
)
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.application.dispatcher import CONCURRENT, FAILING_MAX, Dispatcher
from payagg.application.ports import TryResult
from tests.support.assembly import KEYS
from tests.support.outbox_rows import load_deliveries, load_endpoints
from tests.support.receivers import until

pytestmark = pytest.mark.anyio


@dataclass
class Merchants:
    """A sender: the dead address never answers until told, the others answer at once."""

    release: asyncio.Event = field(default_factory=asyncio.Event)
    healthy: int = 0
    dead: int = 0
    waiting: int = 0
    most_waiting: int = 0

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> TryResult:
        if "dead" not in url:
            await asyncio.sleep(0)
            self.healthy += 1
            return TryResult(200, None, 1)
        self.dead += 1
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await self.release.wait()
        self.waiting -= 1
        return TryResult(None, "no answer in time", 15_000)


def dispatcher(store: PostgresStore, merchants: Any) -> Dispatcher:
    return Dispatcher(store, SystemClock(), SystemEntropy("PAY"), AesVault(KEYS), merchants)


@pytest.fixture
async def second_store(database_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database_url, pool_size=5, pgbouncer=False)
    yield store
    await store.close()


async def test_twenty_thousand_deliveries_to_a_dead_endpoint_delay_no_other(
    database_url: str, store: PostgresStore, second_store: PostgresStore
) -> None:
    """All healthy ones arrive while the dead endpoint still holds its first five tries, with two workers running."""
    load_endpoints(database_url, "whe_dead", 1, "https://dead.example/")
    load_endpoints(database_url, "whe_ok", 500, "https://ok.example/")
    load_deliveries(database_url, "whe_dead", 20_000, 1, "now() - interval '1 hour'")
    load_deliveries(database_url, "whe_ok", 2_000, 500, "now()")
    merchants = Merchants()
    stop = asyncio.Event()
    running = [asyncio.create_task(dispatcher(each, merchants).run(stop)) for each in (store, second_store)]
    await until(lambda: merchants.healthy == 2_000)
    assert merchants.dead == merchants.most_waiting == 5
    stop.set()
    merchants.release.set()
    await asyncio.gather(*running)
    assert merchants.healthy == 2_000


async def test_endpoints_that_have_long_been_failing_leave_half_of_the_tries_to_the_others(
    database_url: str, store: PostgresStore
) -> None:
    load_endpoints(database_url, "whe_dead", CONCURRENT + 50, "https://dead.example/")
    load_endpoints(database_url, "whe_ok", 50, "https://ok.example/")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE webhook_endpoints SET failing_since = now() WHERE url LIKE '%dead%'")
    load_deliveries(database_url, "whe_dead", CONCURRENT + 50, CONCURRENT + 50, "now() - interval '1 hour'")
    load_deliveries(database_url, "whe_ok", 500, 50, "now()")
    merchants = Merchants()
    stop = asyncio.Event()
    running = asyncio.create_task(dispatcher(store, merchants).run(stop))
    try:
        await until(lambda: merchants.healthy == 500 and merchants.dead == FAILING_MAX)
        assert merchants.most_waiting == FAILING_MAX < CONCURRENT
        merchants.release.set()
        await until(lambda: merchants.dead == CONCURRENT + 50)
    finally:
        stop.set()
        merchants.release.set()
        await running


async def test_a_hundred_dead_addresses_of_single_payments_delay_no_endpoint(
    database_url: str, store: PostgresStore
) -> None:
    """Hosts cost a business nothing to name: by host, these would hold all of a worker's slots."""
    load_endpoints(database_url, "whe_ok", 1, "https://ok.example/")
    event = an_event()
    urls = [f"https://dead-{number % 100}.example/" for number in range(500)]
    deliveries = [a_delivery(event, an_id("dlv", number), None, url) for number, url in enumerate(urls)]
    async with store.begin() as tx:
        await tx.webhooks.emit(event, deliveries)
    load_deliveries(database_url, "whe_ok", 50, 1, "now()")
    merchants = Merchants()
    stop = asyncio.Event()
    running = asyncio.create_task(dispatcher(store, merchants).run(stop))
    try:
        await until(lambda: merchants.healthy == 50, seconds=10)
    finally:
        stop.set()
        merchants.release.set()
        await running
    assert merchants.most_waiting == 5


async def test_a_hundred_thousand_future_retries_do_not_slow_a_claim(database_url: str, store: PostgresStore) -> None:
    load_endpoints(database_url, "whe_", 50, "https://ok.example/")
    load_deliveries(database_url, "whe_", 100_000, 50, "now() + interval '5 hours' + n * interval '1 millisecond'")
    load_deliveries(database_url, "whe_", 100, 50, "now() - interval '1 second'")
    now = datetime.now(UTC)
    plan = explained(
        database_url,
        CLAIM,
        after="",
        now=now,
        until=now + timedelta(seconds=30),
        per_partition=5,
        failing=200,
        limit=400,
    )
    assert sequential_scans(plan) == []
    assert rows_removed(plan) < 1_000
    claimed = await store.queue.claim(now, 400, 5, 200, timedelta(seconds=30))
    assert len(claimed) == 100


def test_recording_and_watching_touch_only_the_rows_they_are_about(database_url: str) -> None:
    load_endpoints(database_url, "whe_", 50, "https://ok.example/")
    load_deliveries(database_url, "whe_", 100_000, 50, "now() - interval '1 second'")
    now = datetime.now(UTC)
    count = 300
    ids = {"references": [f"PAY-{n}" for n in range(count)], "ids": [f"dlv_{n:032x}" for n in range(count)]}
    tokens = {"tokens": ["token"] * count}
    results = {
        "statuses": ["DELIVERED"] * count,
        "retries": [None] * count,
        "codes": [200] * count,
        "errors": [None] * count,
        "durations": [5] * count,
        "times": [now] * count,
        "gone": [False] * count,
        "tried": [True] * count,
        "lost": [False] * count,
        "urls": ["https://ok.example/"] * count,
        "lanes": [f"whe_{n}" for n in range(50)],
        "hopeless": timedelta(hours=120),
        "well": 1000,
    }
    for plan in (
        explained(database_url, FINISH, **ids, **tokens, **results),
        explained(database_url, RELEASE, **ids, **tokens),
        explained(database_url, OLDEST, now=now),
        explained(database_url, CLAIM_SUSPECT, now=now, until=now),
    ):
        assert sequential_scans(plan) == []
        assert rows_removed(plan) < 1_000


def test_retention_finds_what_is_old_without_reading_the_rest(database_url: str) -> None:
    load_endpoints(database_url, "whe_", 5, "https://ok.example/")
    load_deliveries(database_url, "whe_", 100_000, 5, "now()", status="DELIVERED")
    plan = explained(database_url, PURGE_DELIVERIES, before="dlv_0000", limit=1000)
    assert sequential_scans(plan) == []
    assert rows_removed(plan) < 1_000


async def test_a_deep_page_of_a_long_log_reads_the_index_and_the_page(database_url: str, store: PostgresStore) -> None:
    load_endpoints(database_url, "whe_", 1, "https://ok.example/")
    load_deliveries(database_url, "whe_", 100_000, 1, "now()", status="DELIVERED")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE webhook_endpoints SET successful = 100000")
    async with store.begin() as tx:
        rows, total = await tx.webhooks.deliveries("whe_0", 90_000, 20)
    assert (len(rows), total) == (20, 100_000)
    assert rows[0].id == f"dlv_{99_999 - 90_000:032x}"


def explained(url: str, statement: Statement, **values: Any) -> list[dict[str, Any]]:
    """Every node of the plan as run, the change rolled back."""
    given = sql.SQL(", ").join(map(sql.Literal, statement.ordered(values)))
    with psycopg.connect(url) as connection:
        connection.execute(b"PREPARE explained AS " + statement.sql)
        question = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained ({})").format(given)
        row = connection.execute(question).fetchone()
        connection.rollback()
    assert row is not None
    return list(nodes(row[0][0]["Plan"]))


def nodes(plan: dict[str, Any]) -> Any:
    yield plan
    for inner in plan.get("Plans", []):
        yield from nodes(inner)


def sequential_scans(plan: list[dict[str, Any]]) -> list[str]:
    large = {"deliveries", "events"}
    return [
        node["Relation Name"] for node in plan if node["Node Type"] == "Seq Scan" and node["Relation Name"] in large
    ]


def rows_removed(plan: list[dict[str, Any]]) -> int:
    return sum(node.get("Rows Removed by Filter", 0) * node["Actual Loops"] for node in plan)
