"""Past events by cursor while the clock that dated some of them was ahead."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from payagg_testing.builders import DAY, SANDBOX, a_business, an_event, an_id

from payagg.adapters.postgres.repositories import webhook_events
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.delivery import Event
from tests.support.postgres_rules import more_roles

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
