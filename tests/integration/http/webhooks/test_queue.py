"""The outbox's queue beyond the store's contract, on Postgres and in memory: turns, failing endpoints, crowds."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from payagg_testing.builders import HOUR, LIVE, MINUTE, NOW, a_delivery, an_endpoint, an_event, an_id
from payagg_testing.memory import MemoryStore

from payagg.adapters.postgres.delivery_queue.statements import DUE_MAX
from payagg.application.ports.store import Transaction
from payagg.domain.delivery import Delivery, DeliveryStatus
from payagg.domain.values import make_reference
from payagg.domain.webhook import CONCURRENCY_START
from tests.contracts.database import Database, autocommit, put
from tests.contracts.webhooks import DOWN, OK, claim, finished, the_endpoint, with_endpoints


@pytest.fixture(params=["postgres", "memory"])
async def db(request: Any) -> AsyncIterator[Database]:
    if request.param == "memory":
        yield autocommit(MemoryStore())
        return
    from payagg.adapters.postgres.store import PostgresStore

    store = PostgresStore(request.getfixturevalue("database_url"), pool_size=5, pgbouncer=False)
    yield autocommit(store)
    await store.close()


async def emit(db: Transaction, number: int, endpoint_id: str | None = "whe_1", url: str | None = None) -> Delivery:
    """One event with one delivery, ordered by `number` in time and id."""
    at = NOW + timedelta(milliseconds=number)
    reference = make_reference("PAY", NOW, number)
    event = an_event(an_id("evt", number, at), reference=reference, created_at=at)
    delivery = a_delivery(event, an_id("dlv", number, at), endpoint_id, url)
    await db.webhook_events.emit(event, [delivery])
    return delivery


async def test_a_limit_smaller_than_what_is_due_serves_every_lane_in_turn_oldest_first(db: Database) -> None:
    lanes = [f"whe_{number}" for number in range(8)]
    await with_endpoints(db, *map(an_endpoint, lanes))
    made = [await emit(db, number, lanes[number % 8]) for number in reversed(range(80))]
    seen: dict[str, list[str]] = {lane: [] for lane in lanes}
    for _ in range(4):
        for one in await claim(db, MINUTE, limit=10):
            seen[one.delivery.partition].append(one.delivery.id)
    assert seen == {lane: sorted(one.id for one in made if one.partition == lane)[:5] for lane in lanes}


@pytest.mark.rule("webhooks.14")
async def test_a_crowd_that_waits_for_one_endpoint_keeps_no_other_waiting(db: Database) -> None:
    """So much is due that Postgres walks the lanes; several workers claim at once."""
    lanes = [f"whe_{number}" for number in range(10)]
    await with_endpoints(db, *map(an_endpoint, ["whe_dead", *lanes]))
    async with db.begin() as tx:
        for number in range(DUE_MAX + 1):
            await emit(tx, number, "whe_dead")
        for number in range(30):
            await emit(tx, DUE_MAX + 1 + number, lanes[number % 10])
    claimed = list[str]()
    found = True
    while found:
        parts = await asyncio.gather(*(claim(db, MINUTE, 400) for _ in range(4)))
        claimed += [one.delivery.partition for part in parts for one in part]
        found = any(parts)
    assert Counter(claimed) == {"whe_dead": CONCURRENCY_START, **dict.fromkeys(lanes, 3)}


async def test_of_slow_lanes_those_with_fewest_in_flight_are_served_first(database_url: str) -> None:
    from payagg.adapters.postgres.store import PostgresStore

    store = PostgresStore(database_url, pool_size=5, pgbouncer=False)
    db, lanes = autocommit(store), ["whe_1", "whe_2", "whe_3"]
    await with_endpoints(db, *map(an_endpoint, lanes))
    for number in range(15):
        await emit(db, number, lanes[number // 5])
        if number == 4:
            assert len(await claim(db, MINUTE, limit=2)) == 2
    served = [one.delivery.partition for _ in range(2) for one in await claim(db, MINUTE, failing=2, slow=lanes)]
    assert sorted(served) == ["whe_2", "whe_2", "whe_3", "whe_3"]
    await store.close()


@pytest.mark.rule("webhooks.13")
async def test_a_hundred_and_twenty_hours_of_nothing_but_failures_switch_an_endpoint_off(db: Database) -> None:
    await with_endpoints(db, an_endpoint())
    await emit(db, 1)
    for hours, is_active in ((0, True), (119, True), (120, False)):
        at = MINUTE + hours * HOUR
        await finished(db, await claim(db, at), DOWN, NOW + at, NOW + at + MINUTE)
        assert (await the_endpoint(db)).is_active is is_active


async def test_a_failing_endpoint_gets_one_try_at_a_time_until_one_succeeds(db: Database) -> None:
    await with_endpoints(db, an_endpoint())
    for number in range(12):
        await emit(db, number)
    first = await claim(db, MINUTE, limit=12)
    assert len(first) == CONCURRENCY_START
    await finished(db, first, DOWN, NOW + MINUTE, NOW + HOUR)
    [probe] = await claim(db, MINUTE)
    assert await claim(db, MINUTE) == []
    await finished(db, [probe], OK, NOW + MINUTE)
    assert len(await claim(db, MINUTE)) == CONCURRENCY_START // 2 + 1


@pytest.mark.parametrize("change", [{"is_active": True}, {"url": "https://new.example/hooks"}])
async def test_activation_and_a_new_address_start_a_new_run_of_failures(db: Database, change: dict[str, Any]) -> None:
    await with_endpoints(db, an_endpoint())
    await emit(db, 1)
    await finished(db, await claim(db, MINUTE), DOWN, NOW + MINUTE, deactivate="is_active" in change)
    failing = await the_endpoint(db)
    assert failing.failing_since is not None
    await db.endpoints.save(replace(failing, **change))
    assert (await the_endpoint(db)).failing_since is None


async def test_a_webhook_url_is_signed_with_every_active_secret_of_its_environment_or_not_sent(db: Database) -> None:
    url = "https://own.example/x"
    await with_endpoints(db, an_endpoint("whe_3", is_active=False), an_endpoint("whe_4", LIVE))
    unsigned = await emit(db, 1, None, url)
    assert await claim(db, MINUTE) == []
    _, [stored] = await db.webhook_events.of_payment(unsigned.reference)
    assert stored.status is DeliveryStatus.FAILED
    old: dict[str, Any] = {"previous_secret": b"old", "previous_secret_expires_at": NOW + HOUR}
    await put(db, an_endpoint("whe_1"), an_endpoint("whe_2", **old))
    await emit(db, 2, None, url)
    [one] = await claim(db, MINUTE)
    secrets = (("whe_1", b"sealed whe_1"), ("whe_2", b"sealed whe_2"), ("whe_2", b"old"))
    assert (one.url, one.secrets) == (url, secrets)
