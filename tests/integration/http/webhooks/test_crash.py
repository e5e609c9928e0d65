"""At least once, whatever dies: a worker is killed with -9 at each step, and a dead merchant delays nobody."""

import asyncio
import os
import signal
import sys
from collections import Counter
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
from payagg.domain.webhook import secret_context
from tests.support.assembly import KEYS
from tests.support.machine import ROOT
from tests.support.receivers import Receiver, a_receiver, until


def load_endpoints(url: str, prefix: str, count: int, address: str) -> None:
    """Active SANDBOX endpoints `<prefix>0`, `<prefix>1`, ... of one business."""
    vault, ids = AesVault(KEYS), [f"{prefix}{n}" for n in range(count)]
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO businesses VALUES ('biz_1', 'Shop', 'ACTIVE', 'APPROVED', now(), now()) ON CONFLICT DO NOTHING"
        )
        cursor.executemany(
            "INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret,"
            " secret_last4, created_at, updated_at)"
            " VALUES (%s, 'biz_1', 'SANDBOX', %s, '{}', true, %s, 'abcd', now(), now())",
            [(id, address, vault.seal(b"s" * 32, secret_context(id))) for id in ids],
        )


def load_deliveries(url: str, prefix: str, count: int, lanes: int, due: str) -> None:
    """`count` deliveries with their events, spread over the endpoints `<prefix>0` ... and due at the SQL `due`."""
    with psycopg.connect(url) as connection:
        [(start,)] = connection.execute("SELECT count(*) FROM events").fetchall()
        numbers = f"generate_series({start}, {start + count - 1}) n"
        connection.execute(
            "INSERT INTO events SELECT 'PAY-' || n, 1, 'evt_' || lpad(to_hex(n), 32, '0'), 'payment.success', 'biz_1',"
            f" 'SANDBOX', convert_to('{{\"n\":' || n || '}}', 'UTF8'), now() FROM {numbers}"
        )
        lane = f"'{prefix}' || n % {lanes}"
        connection.execute(
            "INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment,"
            " endpoint_id, lane, status, attempts, next_attempt_at, created_at)"
            " SELECT 'PAY-' || n, 'dlv_' || lpad(to_hex(n), 32, '0'), 'evt_' || lpad(to_hex(n), 32, '0'),"
            f" 'payment.success', 1, 'biz_1', 'SANDBOX', {lane}, {lane}, 'PENDING', 0, {due}, now() FROM {numbers}"
        )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE deliveries, events")


COUNT = 40
LANES = 4


@asynccontextmanager
async def a_worker(database_url: str, crash_at: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.delivering", database_url, crash_at),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def loaded(database_url: str) -> AsyncIterator[Receiver]:
    """The merchant to whom so many deliveries are due."""
    async with a_receiver() as receiver:
        load_endpoints(database_url, "whe_", LANES, receiver.origin)
        load_deliveries(database_url, "whe_", COUNT, LANES, "now()")
        yield receiver


def states(database_url: str, where: str = "true") -> Counter[tuple[str, int]]:
    """How many deliveries there are of each status and number of lost tries."""
    with psycopg.connect(database_url) as connection:
        return Counter(connection.execute(f"SELECT status, lost_tries FROM deliveries WHERE {where}").fetchall())


def pending(database_url: str) -> int:
    return sum(count for (status, _), count in states(database_url).items() if status == "PENDING")


def assert_all_arrived_under_one_id_each(receiver: Receiver) -> Counter[str]:
    ids = Counter(received.headers["webhook-id"] for received in receiver.received)
    assert len(ids) == COUNT
    for event_id in ids:
        bodies = {received.body for received in receiver.received if received.headers["webhook-id"] == event_id}
        assert bodies == {b'{"n":%d}' % int(event_id.removeprefix("evt_"), 16)}
    return ids


async def test_a_worker_killed_before_it_records_what_it_sent_loses_nothing(database_url: str) -> None:
    async with loaded(database_url) as receiver:
        async with a_worker(database_url, crash_at="sent") as doomed:
            assert await doomed.wait() == -signal.SIGKILL
        assert pending(database_url) > 0
        async with a_worker(database_url):
            await until(lambda: not pending(database_url))
        ids = assert_all_arrived_under_one_id_each(receiver)
    # Sent and not recorded is the one case that costs a merchant a repetition.
    assert max(ids.values()) > 1
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT sum(successful), sum(failed) FROM webhook_endpoints").fetchone()
    assert row == (COUNT, 0)


@pytest.mark.rule("webhooks.11")
async def test_workers_that_die_again_and_again_end_no_delivery_of_a_merchant_who_is_up(database_url: str) -> None:
    async with loaded(database_url) as receiver:
        for _ in range(3):
            async with a_worker(database_url, crash_at="claimed") as doomed:
                assert await doomed.wait() == -signal.SIGKILL
        assert {status for status, _ in states(database_url)} == {"PENDING"}
        assert receiver.received == []
        async with a_worker(database_url):
            # What was never lost, or once, is sent at once; the rest waits by the schedule.
            await until(lambda: states(database_url, "next_attempt_at <= now()").total() == 0)
            assert 0 < pending(database_url) < COUNT
            with psycopg.connect(database_url) as connection:
                connection.execute("UPDATE deliveries SET next_attempt_at = now() WHERE status = 'PENDING'")
            await until(lambda: not pending(database_url))
        assert set(assert_all_arrived_under_one_id_each(receiver).values()) == {1}
    assert states(database_url) == {("DELIVERED", 0): COUNT}


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
