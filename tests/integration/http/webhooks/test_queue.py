"""The outbox's queue beyond the store's contract, on Postgres and in memory: turns, failing endpoints, crowds."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from payagg_testing.builders import NOW, a_business, a_delivery, an_endpoint, an_event

from payagg.adapters.memory import MemoryStore
from payagg.application.ports.store import Store
from payagg.application.ports.webhooks import ClaimedDelivery, DeliveryAttemptResult, DeliveryResult
from payagg.domain.values import Environment, make_reference
from payagg.domain.webhook import Delivery, DeliveryStatus, WebhookEndpoint

LEASE, LATER = timedelta(seconds=30), NOW + timedelta(minutes=1)
OK = DeliveryAttemptResult(200, None, 12)
BAD = DeliveryAttemptResult(500, "answered 500", 12)


@pytest.fixture(params=["postgres", "memory"])
async def outbox(request: Any) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    from payagg.adapters.postgres.store import PostgresStore

    store = PostgresStore(request.getfixturevalue("database_url"), pool_size=5, pgbouncer=False)
    yield store
    await store.close()


async def with_endpoints(store: Store, *endpoints: WebhookEndpoint) -> None:
    async with store.begin() as tx:
        if await tx.businesses.get("biz_1") is None:
            await tx.businesses.add(a_business())
        for endpoint in endpoints:
            await tx.endpoints.add(endpoint)


async def emit(store: Store, number: int, endpoint_id: str | None = "whe_1", url: str | None = None) -> Delivery:
    """One event with one delivery, ordered by `number` in time and id."""
    at = NOW + timedelta(milliseconds=number)
    stamp = f"{int(at.timestamp() * 1000):012x}{number:020x}"
    event = an_event(f"evt_{stamp}", reference=make_reference("PAY", NOW, number), created_at=at)
    delivery = a_delivery(event, f"dlv_{stamp}", endpoint_id, url)
    async with store.begin() as tx:
        await tx.webhook_events.emit(event, [delivery])
    return delivery


async def claim(store: Store, at: datetime = LATER, limit: int = 100) -> list[ClaimedDelivery]:
    return await store.queue.claim(at, limit, 5, limit, LEASE)


async def endpoint(store: Store, endpoint_id: str = "whe_1") -> WebhookEndpoint:
    async with store.begin() as tx:
        found = await tx.endpoints.get("biz_1", endpoint_id)
    assert found is not None
    return found


def done(one: ClaimedDelivery, sent: DeliveryAttemptResult = OK, at: datetime = LATER, **more: Any) -> DeliveryResult:
    return DeliveryResult(one, sent, at, **{"retry_at": None, **more})


async def test_a_limit_smaller_than_what_is_due_serves_every_lane_in_turn_oldest_first(outbox: Store) -> None:
    lanes = [f"whe_{number}" for number in range(8)]
    await with_endpoints(outbox, *(an_endpoint(lane) for lane in lanes))
    made = [await emit(outbox, number, lanes[number % 8]) for number in reversed(range(80))]
    seen: dict[str, list[str]] = {lane: [] for lane in lanes}
    for _ in range(4):
        for one in await claim(outbox, limit=10):
            seen[one.delivery.partition].append(one.delivery.id)
    assert seen == {lane: sorted(one.id for one in made if one.partition == lane)[:5] for lane in lanes}


@pytest.mark.rule("webhooks.13")
async def test_a_hundred_and_twenty_hours_of_nothing_but_failures_switch_an_endpoint_off(outbox: Store) -> None:
    await with_endpoints(outbox, an_endpoint())
    await emit(outbox, 1)
    for hours, is_active in ((0, True), (119, True), (120, False)):
        at = LATER + timedelta(hours=hours)
        [one] = await claim(outbox, at)
        await outbox.queue.finish([done(one, BAD, at, retry_at=at + timedelta(minutes=1))])
        assert (await endpoint(outbox)).is_active is is_active


async def test_a_failing_endpoint_gets_one_try_at_a_time_until_one_succeeds(outbox: Store) -> None:
    await with_endpoints(outbox, an_endpoint())
    for number in range(12):
        await emit(outbox, number)
    first = await claim(outbox)
    await outbox.queue.finish([done(one, BAD, retry_at=NOW + timedelta(hours=1)) for one in first])
    [probe] = await claim(outbox)
    assert await claim(outbox) == []
    await outbox.queue.finish([done(probe)])
    assert len(await claim(outbox)) == 5 // 2 + 1


async def test_activation_and_a_new_address_start_a_new_run_of_failures(outbox: Store) -> None:
    changes: list[dict[str, Any]] = [{"is_active": True}, {"url": "https://new.example/hooks"}]
    for number, change in enumerate(changes):
        endpoint_id = f"whe_{number}"
        await with_endpoints(outbox, an_endpoint(endpoint_id))
        await emit(outbox, number, endpoint_id)
        [one] = await claim(outbox)
        await outbox.queue.finish([done(one, BAD, deactivate="is_active" in change)])
        assert (await endpoint(outbox, endpoint_id)).failing_since is not None
        async with outbox.begin() as tx:
            found = await tx.endpoints.lock("biz_1", endpoint_id)
            assert found is not None
            await tx.endpoints.save(replace(found, **change))
        assert (await endpoint(outbox, endpoint_id)).failing_since is None


async def test_a_webhook_url_is_signed_with_every_active_secret_of_its_environment_or_not_sent(outbox: Store) -> None:
    url = "https://own.example/x"
    await with_endpoints(outbox, an_endpoint("whe_3", is_active=False), an_endpoint("whe_4", Environment.LIVE))
    unsigned = await emit(outbox, 1, None, url)
    assert await claim(outbox) == []
    async with outbox.begin() as tx:
        _, [stored] = await tx.webhook_events.of_payment(unsigned.reference)
    assert stored.status is DeliveryStatus.FAILED
    old: dict[str, Any] = {"previous_secret": b"old", "previous_secret_expires_at": NOW + timedelta(hours=1)}
    await with_endpoints(outbox, an_endpoint("whe_1"), an_endpoint("whe_2", **old))
    await emit(outbox, 2, None, url)
    [one] = await claim(outbox)
    secrets = (("whe_1", b"sealed whe_1"), ("whe_2", b"sealed whe_2"), ("whe_2", b"old"))
    assert (one.url, one.secrets) == (url, secrets)
