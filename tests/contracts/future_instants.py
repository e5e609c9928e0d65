"""What every Store promises of instants that a clock which was ahead has left behind."""

from dataclasses import replace
from datetime import datetime, timedelta

from payagg_testing.builders import NOW, REFERENCE, a_business, a_delivery, a_payment, an_attempt, an_endpoint, an_event

from payagg.application.ports.provider_events import ProviderEvent
from payagg.application.ports.store import Store
from payagg.domain.attempt import AttemptState
from payagg.domain.checks import with_changes
from payagg.domain.values import Environment

AHEAD = timedelta(days=3)
LIMIT = 100
SANDBOX = Environment.SANDBOX


class FutureInstantContract:
    async def test_an_ask_that_is_dated_ahead_is_due_now_and_counts_from_now(self, store: Store) -> None:
        await leave_behind(store, NOW + AHEAD)
        async with store.begin() as tx:
            assert await tx.future_instants.pull_back(NOW, "") == (3, None)
            assert await tx.future_instants.pull_back(NOW, "") == (0, None)
            [attempt] = await tx.attempts.of_payment(REFERENCE)
            _, [delivery] = await tx.webhook_events.of_payment(REFERENCE)
            [event] = await tx.inbox.lock_due(NOW, LIMIT)
            dates = (attempt.created_at, attempt.handed_off_at, attempt.last_ask_at, attempt.next_ask_at)
            assert dates == (NOW, NOW, NOW, NOW)
            assert (delivery.created_at, delivery.next_attempt_at) == (NOW, NOW)
            assert (event.received_at, event.next_attempt_at) == (NOW, NOW)
            assert len(await tx.attempts.due_checks("provider_a", SANDBOX, NOW, LIMIT, timedelta(minutes=2))) == 1
        assert len(await store.queue.claim(NOW, LIMIT, 5, 5, timedelta(minutes=1))) == 1

    async def test_what_the_rules_date_ahead_stays_as_it_is(self, store: Store) -> None:
        await leave_behind(store, NOW)
        async with store.begin() as tx:
            [before] = await tx.attempts.of_payment(REFERENCE)
            assert await tx.future_instants.pull_back(NOW, "") == (0, None)
            assert await tx.attempts.of_payment(REFERENCE) == [before]

    async def test_an_ask_is_begun_though_the_last_one_is_dated_ahead(self, store: Store) -> None:
        await leave_behind(store, NOW + AHEAD)
        assert await store.begin_check(REFERENCE, 1, NOW, timedelta(seconds=2))
        assert not await store.begin_check(REFERENCE, 1, NOW, timedelta(seconds=2))

    async def test_a_hold_of_a_clock_that_was_ahead_keeps_nobody_away(self, store: Store) -> None:
        hold = timedelta(minutes=2)
        async with store.begin() as tx:
            await tx.payments.add(a_payment())
            await tx.attempts.add(with_changes(an_attempt(), next_ask_at=NOW))
            assert len(await tx.attempts.due_checks("provider_a", SANDBOX, NOW + AHEAD, LIMIT, hold)) == 1
        async with store.begin() as tx:
            assert len(await tx.attempts.due_checks("provider_a", SANDBOX, NOW, LIMIT, hold)) == 1
            assert await tx.attempts.due_checks("provider_a", SANDBOX, NOW, LIMIT, hold) == []

    async def test_a_lease_of_a_worker_that_died_while_ahead_holds_no_delivery(self, store: Store) -> None:
        await leave_behind(store, NOW)
        lease = timedelta(minutes=1)
        assert len(await store.queue.claim(NOW + AHEAD, LIMIT, 5, 5, lease)) == 1
        assert len(await store.queue.claim(NOW, LIMIT, 5, 5, lease)) == 1
        assert await store.queue.claim(NOW, LIMIT, 5, 5, lease) == []


async def leave_behind(store: Store, at: datetime) -> None:
    """An attempt that was asked about, an event that is to be delivered, and one that a provider sent, all at `at`."""
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.endpoints.add(an_endpoint())
        await tx.payments.add(a_payment())
        handed = an_attempt(state=AttemptState.HANDED_OFF, now=at)
        await tx.attempts.add(with_changes(handed, last_ask_at=at))
        event = an_event(created_at=at)
        await tx.webhook_events.emit(event, [a_delivery(event)])
        received = ProviderEvent("inb_1", "provider_a", SANDBOX, b"1" * 32, b"{}", at, 1, at + timedelta(seconds=30))
        await tx.inbox.add(replace(received))
