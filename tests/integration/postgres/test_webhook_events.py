"""Large metadata is kept once for the events of a payment, and every body comes back to the byte; past events are
read by cursor though the clock that dated some of them was ahead."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import psycopg
import pytest
from payagg_testing.builders import DAY, NOW, REFERENCE, SANDBOX, a_business, an_event, an_id

from payagg.adapters.postgres.repositories import webhook_events
from payagg.adapters.postgres.repositories.webhook_events import id_at
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.delivery import Event
from payagg.domain.values import Environment
from tests.support.postgres_rules import more_roles
from tests.support.postgres_world import count, execute, somebody_waits
from tests.support.receivers import until

BODY = '{"id":"evt","data":{"amount":1,"metadata":{"note":"%s","deep":{"é":[1.50,null]}},"n":2}}' % ("n" * 9_000)
LONG_AGO = NOW - timedelta(days=40)
BEFORE = NOW - timedelta(days=30)


def event(number: int, body: str = BODY, at: timedelta = timedelta()) -> Event:
    """Event `number` of the payment, drawn at NOW + at."""
    id = f"{id_at('evt', NOW + at)}{number:020x}"
    return an_event(id, number, body=body.replace('"evt"', f'"{id}"').encode())


async def emitted(store: PostgresStore, *events: Event) -> list[Event]:
    async with store.begin() as tx:
        for one in events:
            await tx.webhook_events.emit(one, [])
    return list(events)


async def kept(store: PostgresStore) -> list[Event]:
    async with store.begin() as tx:
        return (await tx.webhook_events.of_payment(REFERENCE))[0]


@pytest.fixture
async def business(store: PostgresStore) -> None:
    async with store.begin() as tx:
        await tx.businesses.add(a_business())


async def test_the_events_of_a_payment_share_their_metadata(store: PostgresStore, database_url: str) -> None:
    written = await emitted(store, event(1), event(2), event(3))
    assert await count(database_url, "event_metadata") == 1
    rows = execute(database_url, "SELECT length(body), body FROM events ORDER BY sequence")
    assert [(size < 120, msgspec.json.decode(body)["data"]["metadata"]) for size, body in rows] == [(True, None)] * 3
    assert await kept(store) == written
    async with store.begin() as tx:
        assert await tx.webhook_events.of_payments([REFERENCE]) == written
        assert await tx.webhook_events.page("biz_1", Environment.SANDBOX, None, 9) == written


async def test_metadata_that_is_encoded_otherwise_lies_beside(store: PostgresStore, database_url: str) -> None:
    written = await emitted(store, event(1), event(2, BODY.replace("1.50", "1.5")))
    assert await count(database_url, "event_metadata") == 2
    assert await kept(store) == written


@pytest.mark.parametrize(
    "body", ['{"data":{"metadata":{"order":7}}}', "not JSON " * 500, '{"other":"%s"}' % ("x" * 5_000)]
)
async def test_any_other_body_stays_whole(store: PostgresStore, database_url: str, body: str) -> None:
    written = await emitted(store, event(1, body))
    assert await count(database_url, "event_metadata") == 0
    assert await kept(store) == written


@pytest.mark.usefixtures("business")
async def test_metadata_goes_with_the_last_event_that_needs_it(store: PostgresStore, database_url: str) -> None:
    _, late = await emitted(store, event(1, at=LONG_AGO - NOW), event(2))
    assert await store.queue.purge(BEFORE, 10) == 1
    assert await count(database_url, "event_metadata") == 1
    assert await kept(store) == [late]
    assert await store.queue.purge(NOW + timedelta(days=1), 10) == 1
    assert await count(database_url, "event_metadata") == 0


@pytest.mark.usefixtures("business")
async def test_an_event_that_comes_during_a_purge_keeps_its_metadata(store: PostgresStore, database_url: str) -> None:
    await emitted(store, event(1, at=LONG_AGO - NOW))
    late = event(2)
    async with store.begin() as tx:
        await tx.webhook_events.emit(late, [])
        await tx.webhook_events.of_payments([])  # what was sent has an answer, so the lock is held
        purging = asyncio.create_task(store.queue.purge(BEFORE, 10))
        await until(lambda: purging.done() or somebody_waits(database_url))
        assert not purging.done()
    assert await purging == 1
    assert await kept(store) == [late]


async def test_lost_metadata_fails_no_event(store: PostgresStore, database_url: str) -> None:
    (written,) = await emitted(store, event(1))
    execute(database_url, "DELETE FROM event_metadata")
    (left,) = await kept(store)
    was = msgspec.json.decode(written.body)
    assert msgspec.json.decode(left.body) == {**was, "data": {**was["data"], "metadata": None}}


async def test_metadata_is_gone_once_the_payer_is_taken_out_of_every_body(
    store: PostgresStore, database_url: str
) -> None:
    _, second = await emitted(store, event(1), event(2))
    cleared = [event(number, '{"id":"evt","data":{"metadata":null}}') for number in (1, 2)]
    async with store.begin() as tx:
        await tx.webhook_events.save_bodies(cleared[:1])
    assert await kept(store) == [cleared[0], second]
    async with store.begin() as tx:
        await tx.webhook_events.save_bodies(cleared[1:])
    assert await kept(store) == cleared
    assert await count(database_url, "event_metadata") == 0


# A transaction that writes, and so may yet add an event.
WRITES = "UPDATE businesses SET name = name WHERE id = 'biz_1'"


async def events_of(store: PostgresStore, after: str | None = None) -> list[Event]:
    async with store.begin() as tx:
        return await tx.webhook_events.page("biz_1", SANDBOX, after, 9)


async def test_events_that_follow_one_of_a_clock_that_was_ahead_are_shown_at_once(
    store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    ahead = an_event(an_id("evt", 1, now + DAY), 1, created_at=now + DAY)
    # Its id goes on behind the last one, though the clock is right again.
    follows = an_event(an_id("evt", 2, now + DAY), 2, created_at=now)
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.webhook_events.emit(ahead, [])
        await tx.webhook_events.emit(follows, [])
    async with await psycopg.AsyncConnection.connect(database_url) as slow:
        await slow.execute(WRITES)
        assert await events_of(store) == []
    assert await events_of(store, ahead.id) == [follows]
    monkeypatch.setattr(webhook_events, "BETWEEN_LOOKS", 0.5)
    async with await psycopg.AsyncConnection.connect(database_url) as short:
        await short.execute(WRITES)
        reading = asyncio.create_task(events_of(store))
        await asyncio.sleep(0.1)
        assert not reading.done()
        await short.commit()
        assert await reading == [ahead, follows]


async def test_no_event_behind_an_open_transaction_of_another_role_of_ours_is_shown_before_it(
    store: PostgresStore, postgres: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_events, "SETTLE", timedelta(0))
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
    with more_roles(postgres, database_url) as (second, _):
        async with await psycopg.AsyncConnection.connect(second) as slow:
            await slow.execute(WRITES)
            fast = an_event(an_id("evt", 1, datetime.now(UTC)), created_at=datetime.now(UTC))
            async with store.begin() as tx:
                await tx.webhook_events.emit(fast, [])
            await asyncio.sleep(0.01)  # an id's instant is a millisecond
            assert await events_of(store) == []
            await slow.commit()
        assert await events_of(store) == [fast]
