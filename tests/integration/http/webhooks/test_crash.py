"""At least once, whatever dies: the worker is killed with -9 at each step."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from tests.integration.http.webhooks.outbox_rows import load_deliveries, load_endpoints
from tests.support.machine import ROOT
from tests.support.receivers import Receiver, a_receiver, until

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
