"""What every Store promises of instants that a clock which was ahead has left behind."""

from datetime import datetime, timedelta

from payagg_testing.builders import NOW, REFERENCE, a_business, a_delivery, a_payment, an_attempt, an_endpoint, an_event

from payagg.application.ports.providers import ProviderEvent
from payagg.domain.attempt import LEASE, AttemptState
from payagg.domain.checks import with_changes
from payagg.domain.values import Environment
from tests.contracts.database import Database, put

AHEAD = timedelta(days=3)
LIMIT = 100
SANDBOX = Environment.SANDBOX


class FutureInstantContract:
    async def test_an_ask_that_is_dated_ahead_is_due_now_and_counts_from_now(self, db: Database) -> None:
        await leave_behind(db, NOW + AHEAD)
        assert await db.upkeep.pull_back(NOW, "") == (3, None)
        assert await db.upkeep.pull_back(NOW, "") == (0, None)
        [attempt] = await db.attempts.of_payment(REFERENCE)
        _, [delivery] = await db.webhook_events.of_payment(REFERENCE)
        [event] = await db.inbox.lock_due(NOW, LIMIT)
        dates = (attempt.created_at, attempt.handed_off_at, attempt.last_ask_at, attempt.next_ask_at)
        assert (*dates, attempt.lease_until) == (NOW, NOW, NOW, NOW, NOW + LEASE)
        assert (delivery.created_at, delivery.next_attempt_at) == (NOW, NOW)
        assert (event.received_at, event.next_attempt_at) == (NOW, NOW)
        assert len(await db.attempts.due_checks("provider_a", SANDBOX, NOW, LIMIT, timedelta(minutes=2))) == 1
        assert len(await db.queue.claim(NOW, LIMIT, 5, timedelta(minutes=1))) == 1

    async def test_an_ask_is_begun_though_the_last_one_is_dated_ahead(self, db: Database) -> None:
        await leave_behind(db, NOW + AHEAD)
        assert [await db.begin_check(REFERENCE, 1, NOW, timedelta(seconds=2)) for _ in range(2)] == [True, False]

    async def test_what_the_rules_date_ahead_stays_as_it_is(self, db: Database) -> None:
        await leave_behind(db, NOW)
        before = await db.attempts.of_payment(REFERENCE)
        assert await db.upkeep.pull_back(NOW, "") == (0, None)
        assert await db.attempts.of_payment(REFERENCE) == before != []

    async def test_a_hold_or_a_lease_of_a_clock_that_was_ahead_keeps_nobody_away(self, db: Database) -> None:
        await leave_behind(db, NOW)
        minute, times = timedelta(minutes=1), (NOW + AHEAD, NOW, NOW)
        [attempt] = await db.attempts.of_payment(REFERENCE)
        await db.attempts.save(with_changes(attempt, next_ask_at=NOW), attempt.token)
        asked = [await db.attempts.due_checks("provider_a", SANDBOX, now, LIMIT, 2 * minute) for now in times]
        sent = [await db.queue.claim(now, LIMIT, 5, minute) for now in times]
        assert [[len(found) for found in each] for each in (asked, sent)] == [[1, 1, 0]] * 2


async def leave_behind(db: Database, at: datetime) -> None:
    """An attempt that was asked about, an event that is to be delivered, and one that a provider sent, all at `at`."""
    await put(db, a_business(), an_endpoint(), a_payment())
    handed = an_attempt(state=AttemptState.HANDED_OFF, now=at)
    await db.attempts.add(with_changes(handed, last_ask_at=at))
    event = an_event(created_at=at)
    await db.webhook_events.emit(event, [a_delivery(event)])
    received = ProviderEvent("inb_1", "provider_a", SANDBOX, b"1" * 32, b"{}", at, 1, at + timedelta(seconds=30))
    await db.inbox.add(received)
