"""What every Store promises about merchant webhooks, the sending queue, the inbox, health and counters."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from payagg_testing.builders import (
    HOUR,
    LIVE,
    MINUTE,
    NOW,
    REFERENCE,
    SANDBOX,
    SECOND,
    a_business,
    a_delivery,
    a_payment,
    an_endpoint,
    an_event,
    an_id,
)
from payagg_testing.clocks import ManualClock, SeededEntropy

from payagg.adapters.postgres.delivery_queue.statements import DUE_MAX
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.providers import ProviderEvent, RefusedEvent, SignatureFault
from payagg.application.ports.store import Transaction
from payagg.application.ports.webhooks import ClaimedDelivery, DeliveryAttemptResult, DeliveryResult
from payagg.domain.delivery import ALONE_FROM, Delivery, DeliveryStatus, Event
from payagg.domain.health import Health
from payagg.domain.payment import SEQUENCE_MAX, Trigger
from payagg.domain.rate_limit import MARKS_MAX, RateLimit
from payagg.domain.values import make_reference
from payagg.domain.webhook import ANSWERS_WELL, CONCURRENCY_START, Subscriber, WebhookEndpoint
from tests.contracts.database import Database, put

DLV, EVT = ([an_id(prefix, number) for number in range(10)] for prefix in ("dlv", "evt"))
LEASE = timedelta(seconds=60)
OK, DOWN = DeliveryAttemptResult(200, None, 12), DeliveryAttemptResult(None, "no answer", 15000)
GONE = DeliveryAttemptResult(410, "answered 410", 1)


async def with_endpoints(db: Database, *endpoints: WebhookEndpoint) -> None:
    await put(db, a_business(), *endpoints)


def an_inbound_event(id: str = "inb_1", digest: bytes = b"d" * 32, provider: str = "provider_a") -> ProviderEvent:
    return ProviderEvent(id, provider, LIVE, digest, b'{"event":"x"}', NOW, next_attempt_at=NOW)


async def emitted(db: Database, *deliveries: Delivery, event: Event | None = None) -> None:
    await db.webhook_events.emit(event or an_event(), deliveries)


async def emit_one(db: Transaction, number: int, endpoint_id: str | None = "whe_1", url: str | None = None) -> Delivery:
    """One event with one delivery, ordered by `number` in time and id."""
    at = NOW + timedelta(milliseconds=number)
    reference = make_reference("PAY", NOW, number)
    event = an_event(an_id("evt", number, at), reference=reference, created_at=at)
    delivery = a_delivery(event, an_id("dlv", number, at), endpoint_id, url)
    await db.webhook_events.emit(event, [delivery])
    return delivery


async def finished(
    db: Database,
    tries: Iterable[ClaimedDelivery],
    result: DeliveryAttemptResult,
    at: datetime = NOW,
    again: datetime | None = None,
    **more: bool,
) -> None:
    """The tries ended so; the next one of each is due at `again`."""
    await db.queue.finish([DeliveryResult(one, result, at, again, **more) for one in tries])


async def claim(
    db: Database,
    at: timedelta = timedelta(0),
    limit: int = 10,
    failing: int = 10,
    slow: Collection[str] = (),
) -> list[ClaimedDelivery]:
    return await db.queue.claim(NOW + at, limit, failing, LEASE, slow)


async def the_endpoint(db: Database, id: str = "whe_1") -> WebhookEndpoint:
    endpoint = await db.endpoints.lock("biz_1", id)
    assert endpoint is not None
    return endpoint


async def the_delivery(db: Database, id: str = DLV[1]) -> Delivery:
    delivery = await db.webhook_events.delivery("whe_1", id)
    assert delivery is not None
    return delivery


class WebhookContract:
    async def test_endpoints_are_their_business_s_alone_and_subscribe_by_environment(self, db: Database) -> None:
        first = an_endpoint("whe_1", events=("payment.success",), description="Ọja")
        off = an_endpoint("whe_2", is_active=False, created_at=NOW + MINUTE)
        live = an_endpoint("whe_3", LIVE, created_at=NOW + 2 * MINUTE)
        await with_endpoints(db, live, off, first)
        assert [await db.endpoints.of_business(id) for id in ("biz_1", "biz_2")] == [[first, off, live], []]
        owners = [("biz_1", SANDBOX), ("biz_1", LIVE), ("biz_2", SANDBOX)]
        told, told_live = [Subscriber("whe_1", SANDBOX, ("payment.success",))], [Subscriber("whe_3", LIVE, ())]
        assert [await db.endpoints.subscribers(*owner) for owner in owners] == [told, told_live, []]
        assert await db.endpoints.subscribers_of(owners) == {owners[0]: told, owners[1]: told_live}
        assert await db.endpoints.subscribers_of(owners[1:]) == {owners[1]: told_live}
        for read in (db.endpoints.lock, db.endpoints.get):
            assert [await read(id, "whe_1") for id in ("biz_1", "biz_2")] == [first, None]

    async def test_saving_an_endpoint_keeps_the_queues_counters(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        await emitted(db, a_delivery())
        await finished(db, await claim(db), OK)
        changed = an_endpoint(description="new", successful=99, failed=99, concurrency=50).rotate(b"new", "wxyz", NOW)
        await db.endpoints.save(changed)
        assert await the_endpoint(db) == replace(changed, successful=1, failed=0, concurrency=CONCURRENCY_START + 1)

    async def test_a_removed_endpoint_is_shown_nowhere_and_goes_with_the_last_of_its_log(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint(), an_endpoint("whe_2"), an_endpoint("whe_3"))
        await emitted(db, a_delivery(), a_delivery(id=DLV[2], endpoint_id="whe_3"))
        off = await db.queue.count_deactivated()
        for removed in ("whe_1", "whe_2"):
            await db.endpoints.remove(removed, NOW)
        for listed in (await db.endpoints.of_business("biz_1"), await db.endpoints.subscribers("biz_1", SANDBOX)):
            assert [one.id for one in listed] == ["whe_3"]
        assert await db.endpoints.lock("biz_1", "whe_1") is await db.endpoints.get("biz_1", "whe_1") is None
        assert await db.queue.count_deactivated() == off
        (left,) = await claim(db)
        assert left.delivery.endpoint_id == "whe_3"
        _, deliveries = await db.webhook_events.of_payment(REFERENCE)
        assert [one.last_error for one in deliveries if one.endpoint_id == "whe_1"] == ["the endpoint is switched off"]
        await finished(db, [left], OK)
        await emitted(db, a_delivery(an_event(EVT[2], 2), DLV[3], "whe_3"), event=an_event(EVT[2], 2))
        for until, left_over in ((NOW, [DLV[3], DLV[2]]), (NOW + MINUTE, [DLV[3]])):
            while await db.queue.purge(until, 100):
                pass
            # what has not ended stays
            assert [one.id for one in (await db.webhook_events.deliveries("whe_3", 0, 10))[0]] == left_over
        assert (await the_endpoint(db, "whe_3")).successful == 1
        await db.endpoints.add(an_endpoint())  # its id is free: nothing of it is left
        assert [one.id for one in await db.endpoints.of_business("biz_1")] == ["whe_1", "whe_3"]

    async def test_events_are_read_by_cursor_within_one_environment(self, db: Database) -> None:
        await with_endpoints(db)
        events = [an_event(EVT[n], n) for n in (1, 2, 3)]
        for event in (*events, an_event(EVT[4], 4, environment=LIVE)):
            await emitted(db, event=event)
        asked = (("biz_1", None, 10), ("biz_1", None, 2), ("biz_1", EVT[2], 10), ("biz_2", None, 10))
        pages = [await db.webhook_events.page(owner, SANDBOX, after, limit) for owner, after, limit in asked]
        assert pages == [events, events[:2], events[2:], []]
        owners = (("biz_1", SANDBOX), ("biz_1", LIVE), ("biz_2", SANDBOX))
        assert [await db.webhook_events.last_id(*owner) for owner in owners] == [EVT[3], EVT[4], None]

    async def test_after_the_clock_went_back_events_come_after_every_cursor(self, db: Database) -> None:
        await with_endpoints(db)
        clock = ManualClock()
        settlement, cursor = Settlement(db, clock, SeededEntropy()), None
        for number, hours in enumerate((0, -1, 0, 2)):
            clock.move(timedelta(hours=hours))
            payment = a_payment(reference=f"PAY-20250131-00000{number}")
            async with db.begin() as tx:
                await tx.payments.add(payment)
                await settlement.move(tx, payment, Trigger.SUCCEED, actor="test")
            assert await db.webhook_events.page("biz_2", SANDBOX, cursor, 10) == []
            [event] = await db.webhook_events.page("biz_1", SANDBOX, cursor, 10)
            assert (event.reference, event.created_at) == (payment.reference, clock.now())
            cursor = event.id
        assert cursor is not None
        assert cursor.startswith(an_id("evt", 0, clock.now())[:16])  # the clock is ahead again

    async def test_a_payments_events_and_deliveries_come_back_whole(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        own = a_delivery(id=DLV[2], endpoint_id=None, url="https://shop.example/own")
        await emitted(db, a_delivery(), own)
        assert await db.webhook_events.of_payment(REFERENCE) == ([an_event()], [a_delivery(), own])
        assert await db.webhook_events.of_payment("PAY-20250131-AAAAAA") == ([], [])

    async def test_the_log_is_newest_first_and_its_total_counts_every_page(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint(), an_endpoint("whe_2"))
        await emitted(db, *(a_delivery(id=DLV[n]) for n in range(3)), a_delivery(id=DLV[9], endpoint_id="whe_2"))
        await finished(db, await claim(db, limit=2), OK)
        for asked, numbers in (((0, 2), [2, 1]), ((2, 2), [0]), ((0, 2, DLV[2]), [1, 0]), ((0, 2, DLV[0]), [])):
            page, total = await db.webhook_events.deliveries("whe_1", *asked)
            assert ([one.id for one in page], total) == ([DLV[number] for number in numbers], 3)
        assert await db.webhook_events.delivery("whe_2", DLV[1]) is None
        assert await db.webhook_events.delivery("whe_1", DLV[1]) is not None
        # Also where another request has removed the endpoint in between.
        assert await db.webhook_events.deliveries("whe_none", 0, 10) == ([], 0)


class QueueContract:
    async def test_a_due_delivery_is_leased_once_and_counted_as_a_try_until_it_is_released(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        assert await db.queue.oldest_due(NOW) is None
        await emitted(db, a_delivery())
        assert [await db.queue.oldest_due(NOW + since) for since in (MINUTE, -SECOND)] == [NOW, None]
        asked = ((NOW + MINUTE, 10), (NOW + MINUTE, 0), (NOW - SECOND, 10))
        assert [await db.queue.due(*one) for one in asked] == [1, 0, 0]
        assert await claim(db, -SECOND) == []
        (claimed,) = await claim(db)
        assert (claimed.delivery.attempts, claimed.delivery.lease_until) == (1, NOW + LEASE)
        assert (claimed.body, claimed.url) == (an_event().body, "https://shop.example/hooks")
        assert claimed.secrets == (("whe_1", b"sealed whe_1"),)
        assert (await claim(db), await db.queue.due(NOW, 10)) == ([], 0)
        await db.queue.release([claimed])
        (again,) = await claim(db)
        assert again.delivery.attempts == 1

    async def test_a_lease_that_ran_out_is_claimed_again_and_the_late_result_is_ignored(self, db: Database) -> None:
        """And a try that is lost says nothing of the endpoint."""
        await with_endpoints(db, an_endpoint())
        await emitted(db, a_delivery())
        dead, (alive,) = await claim(db), await claim(db, LEASE)
        assert (alive.delivery.attempts, alive.delivery.lost_tries, alive.is_lease_expired) == (1, 1, True)
        await finished(db, dead, OK, NOW + LEASE)
        stored = await the_delivery(db)
        assert (stored.status, stored.token) == (DeliveryStatus.PENDING, alive.delivery.token)
        await finished(db, [alive], DOWN, NOW, NOW + MINUTE, lost=True)
        stored, endpoint = await the_delivery(db), await the_endpoint(db)
        assert (stored.status, stored.next_attempt_at) == (DeliveryStatus.PENDING, NOW + MINUTE)
        assert (stored.last_error, stored.lost_tries, stored.duration_ms) == (DOWN.error, 1, None)
        assert (endpoint.failing_since, endpoint.failed) == (None, 0)

    async def test_a_suspect_is_claimed_by_itself_and_stands_before_no_other(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint(concurrency=2))
        await emitted(db, *(a_delivery(id=DLV[n]) for n in range(8)))
        for loss in range(ALONE_FROM):
            assert len(await claim(db, loss * LEASE)) == 2
        at = ALONE_FROM * LEASE
        lost = await claim(db, at)
        assert [(one.delivery.attempts, one.delivery.lost_tries) for one in lost] == [(1, ALONE_FROM)] * 2
        assert await db.queue.claim_poison_message(NOW + at, LEASE) is None
        await finished(db, lost, DOWN, NOW + at, NOW + at, lost=True)
        # They are due before the others, and yet the others get all that the endpoint may have at once.
        others = await claim(db, at)
        assert len(others) == 2
        assert {one.delivery.id for one in others}.isdisjoint(one.delivery.id for one in lost)
        assert await db.queue.claim_poison_message(NOW + at - SECOND, LEASE) is None
        one, two, none = [await db.queue.claim_poison_message(NOW + at, LEASE) for _ in range(3)]
        assert one is not None
        assert two is not None
        assert none is None
        assert {one.delivery.id, two.delivery.id} == {each.delivery.id for each in lost}
        assert (one.body, one.url, one.secrets) == (lost[0].body, lost[0].url, lost[0].secrets)
        await finished(db, [one], DOWN, NOW + at, NOW + at)
        await db.queue.release([two])
        stored = [await the_delivery(db, each.delivery.id) for each in (one, two)]
        assert [(each.attempts, each.lost_tries) for each in stored] == [(1, 0), (1, ALONE_FROM)]
        assert (await the_endpoint(db)).failing_since == NOW + at

    async def test_a_finished_try_ends_or_reschedules_the_delivery_and_moves_the_counters(self, db: Database) -> None:
        """And what ended may be sent again, under the same id."""
        await with_endpoints(db, an_endpoint())
        await emitted(db, a_delivery())
        await finished(db, await claim(db), DOWN, NOW, NOW + MINUTE)
        assert await claim(db, MINUTE - SECOND) == []
        await db.webhook_events.redeliver(await the_delivery(db), NOW + SECOND)
        await finished(db, await claim(db, SECOND), DOWN, NOW, NOW + MINUTE)
        assert (await the_delivery(db)).attempts == 1
        await finished(db, await claim(db, MINUTE), OK, NOW + MINUTE)
        stored, endpoint = await the_delivery(db), await the_endpoint(db)
        assert (stored.status, stored.attempts, stored.last_status_code) == (DeliveryStatus.DELIVERED, 2, 200)
        assert (stored.next_attempt_at, stored.last_attempt_at) == (None, NOW + MINUTE)
        assert (endpoint.successful, endpoint.failed, endpoint.failing_since) == (1, 0, None)
        await db.webhook_events.redeliver(stored, NOW + 2 * MINUTE)
        assert (await the_endpoint(db)).successful == 0
        (again,) = await claim(db, 2 * MINUTE)
        assert (again.delivery.id, again.delivery.event_id) == (DLV[1], EVT[1])

    async def test_a_delivery_sent_by_hand_without_end_holds_up_no_other(self, db: Database) -> None:
        """Its attempts are counted as far as the column goes."""
        await with_endpoints(db, an_endpoint(), an_endpoint("whe_2"))
        worn = replace(a_delivery(), attempts=SEQUENCE_MAX)
        await emitted(db, worn, a_delivery(id=DLV[2], endpoint_id="whe_2"))
        claimed = await claim(db)
        assert {one.delivery.id: one.delivery.attempts for one in claimed} == {DLV[1]: SEQUENCE_MAX, DLV[2]: 1}

    async def test_an_endpoint_gets_more_at_once_after_good_answers_less_after_slow_ones_and_half_after_a_bad_one(
        self, db: Database
    ) -> None:
        await with_endpoints(db, an_endpoint())
        await emitted(db, *(a_delivery(id=DLV[n]) for n in range(10)), a_delivery(id=an_id("dlv", 77)))
        slow = DeliveryAttemptResult(200, None, ANSWERS_WELL // timedelta(milliseconds=1) + 1)

        async def after(*sent: DeliveryAttemptResult) -> int:
            """How many tries the endpoint gets once so many of those that it has now have ended so."""
            claimed = await claim(db, limit=len(sent))
            await db.queue.finish([DeliveryResult(*one, NOW, None) for one in zip(claimed, sent, strict=True)])
            return (await the_endpoint(db)).concurrency

        assert len(await claim(db, limit=0)) == 0
        assert await after(OK, OK) == CONCURRENCY_START + 2
        claimed = await claim(db, limit=20)
        assert len(claimed) == CONCURRENCY_START + 2
        await db.queue.release(claimed)
        assert await after(OK, slow) == CONCURRENCY_START
        assert await after(slow) == CONCURRENCY_START
        assert await after(slow, DOWN, OK) == CONCURRENCY_START // 2
        assert await after(slow) == CONCURRENCY_START // 2

    async def test_an_endpoint_is_switched_off_when_told_and_its_failing_has_a_beginning(self, db: Database) -> None:
        """A try that failed through us is counted, and says nothing of it."""
        await with_endpoints(db, an_endpoint(), an_endpoint("whe_2"))
        await emitted(db, a_delivery(), *(a_delivery(id=DLV[n], endpoint_id="whe_2") for n in (2, 3)))
        gone, ours, theirs = sorted(await claim(db), key=lambda one: one.delivery.id)
        before = await db.queue.count_deactivated()
        await finished(db, [gone], GONE, deactivate=True)
        off = await the_endpoint(db)
        assert (off.is_active, off.failed) == (False, 1)
        assert await db.queue.count_deactivated() == before + 1
        for one, is_ours, state in ((ours, True, (True, None, 1)), (theirs, False, (True, NOW, 2))):
            await finished(db, [one], DOWN, uncounted=is_ours)
            on = await the_endpoint(db, "whe_2")
            assert (on.is_active, on.failing_since, on.failed) == state
        for on_again in (an_endpoint(), an_endpoint("whe_2", url="https://shop.example/new")):
            await db.endpoints.save(on_again)
            assert (await the_endpoint(db, on_again.id)).failing_since is None

    async def test_a_try_at_an_old_address_is_counted_and_says_nothing_of_the_new_one(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        await emitted(db, *(a_delivery(id=DLV[n]) for n in range(3)))
        gone, fine = await claim(db, limit=2)
        await db.endpoints.save(an_endpoint(url="https://shop.example/new"))
        (failing,) = await claim(db)
        gone_result = DeliveryResult(gone, GONE, NOW, None, deactivate=True)
        await db.queue.finish([gone_result, DeliveryResult(failing, DOWN, NOW + SECOND, NOW + MINUTE)])
        await finished(db, [fine], OK, NOW + MINUTE)
        endpoint = await the_endpoint(db)
        assert (endpoint.is_active, endpoint.failing_since) == (True, NOW + SECOND)
        assert (endpoint.successful, endpoint.failed) == (1, 1)

    async def test_failing_endpoints_share_so_many_tries_and_none_waits_for_ever(self, db: Database) -> None:
        dead = [f"whe_{n}" for n in range(6)]
        await with_endpoints(db, *map(an_endpoint, dead), an_endpoint("whe_fine"))
        later = replace(a_delivery(id=DLV[6], endpoint_id="whe_fine"), next_attempt_at=NOW + MINUTE)
        await emitted(db, *(a_delivery(id=DLV[n], endpoint_id=id) for n, id in enumerate(dead)), later)
        first = await claim(db, failing=0)
        assert {one.delivery.partition for one in first if not one.is_failing} == set(dead)
        await finished(db, first, DOWN, NOW, NOW)
        (fine,) = await claim(db, MINUTE, failing=0)
        assert (fine.delivery.partition, fine.is_failing) == ("whe_fine", False)
        tried: set[str] = set()
        for _ in range(100):
            claimed = await claim(db, MINUTE, failing=2)
            assert [one.is_failing for one in claimed] == [True, True]
            tried |= {one.delivery.partition for one in claimed}
            await finished(db, claimed, DOWN, NOW, NOW)
        assert tried == set(dead)

    async def test_slow_lanes_share_the_tries_of_failing_ones(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint(), an_endpoint("whe_fine"))
        own = [a_delivery(id=DLV[n], endpoint_id=None, url="https://shop.example/own") for n in range(4)]
        others = (a_delivery(id=DLV[4 + n], endpoint_id=id) for n, id in enumerate(("whe_1", "whe_1", "whe_fine")))
        await emitted(db, *own, *others)
        slow = ["whe_1", own[0].partition]
        first = await claim(db, failing=2, slow=slow)
        assert sorted(one.is_failing for one in first) == [False, True, True]
        assert next(one for one in first if not one.is_failing).delivery.partition == "whe_fine"
        assert await claim(db, failing=0, slow=slow) == []
        # It is slow, not failing: it still gets more than one at a time.
        rest = await claim(db, slow=slow)
        assert Counter(one.delivery.partition for one in (*first, *rest)) == {"whe_1": 2, slow[1]: 4, "whe_fine": 1}

    async def test_a_lane_has_so_many_in_flight_and_no_more(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint(concurrency=2), an_endpoint("whe_2"))
        await emitted(db, *(a_delivery(id=DLV[n]) for n in range(4)), a_delivery(id=DLV[9], endpoint_id="whe_2"))
        claimed = await claim(db)
        assert sorted(one.delivery.partition for one in claimed) == ["whe_1", "whe_1", "whe_2"]
        assert await claim(db) == []

    async def test_what_went_to_a_payment_s_own_address_is_sent_again(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        own = a_delivery(endpoint_id=None, url="https://shop.example/own")
        await emitted(db, own, a_delivery(id=DLV[2]))
        await finished(db, await claim(db), OK)
        for others in ((REFERENCE, DLV[2]), ("PAY-20250131-ZZZZZZ", DLV[1])):
            assert await db.webhook_events.own_delivery(*others) is None
        delivery = await db.webhook_events.own_delivery(REFERENCE, DLV[1])
        assert delivery is not None
        assert delivery.status is DeliveryStatus.DELIVERED
        await db.webhook_events.redeliver(delivery, NOW + MINUTE)
        assert (await the_endpoint(db)).successful == 1
        (again,) = await claim(db, MINUTE)
        assert (again.delivery.id, again.delivery.event_id, again.url) == (DLV[1], EVT[1], own.url)

    async def test_a_limit_smaller_than_what_is_due_serves_every_lane_in_turn_oldest_first(self, db: Database) -> None:
        lanes = [f"whe_{number}" for number in range(8)]
        await with_endpoints(db, *map(an_endpoint, lanes))
        made = [await emit_one(db, number, lanes[number % 8]) for number in reversed(range(80))]
        seen: dict[str, list[str]] = {lane: [] for lane in lanes}
        for _ in range(4):
            for one in await claim(db, MINUTE, limit=10):
                seen[one.delivery.partition].append(one.delivery.id)
        assert seen == {lane: sorted(one.id for one in made if one.partition == lane)[:5] for lane in lanes}

    @pytest.mark.rule("webhooks.14")
    async def test_a_crowd_that_waits_for_one_endpoint_keeps_no_other_waiting(self, db: Database) -> None:
        """So much is due that Postgres walks the lanes; several workers claim at once."""
        lanes = [f"whe_{number}" for number in range(10)]
        await with_endpoints(db, *map(an_endpoint, ["whe_dead", *lanes]))
        async with db.begin() as tx:
            for number in range(DUE_MAX + 1):
                await emit_one(tx, number, "whe_dead")
            for number in range(30):
                await emit_one(tx, DUE_MAX + 1 + number, lanes[number % 10])
        claimed = list[str]()
        found = True
        while found:
            parts = await asyncio.gather(*(claim(db, MINUTE, 400) for _ in range(4)))
            claimed += [one.delivery.partition for part in parts for one in part]
            found = any(parts)
        assert Counter(claimed) == {"whe_dead": CONCURRENCY_START, **dict.fromkeys(lanes, 3)}

    @pytest.mark.rule("webhooks.13")
    async def test_120_hours_of_nothing_but_failures_switch_an_endpoint_off(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        await emit_one(db, 1)
        for hours, is_active in ((0, True), (119, True), (120, False)):
            at = MINUTE + hours * HOUR
            await finished(db, await claim(db, at), DOWN, NOW + at, NOW + at + MINUTE)
            assert (await the_endpoint(db)).is_active is is_active

    async def test_a_failing_endpoint_gets_one_try_at_a_time_until_one_succeeds(self, db: Database) -> None:
        await with_endpoints(db, an_endpoint())
        for number in range(12):
            await emit_one(db, number)
        first = await claim(db, MINUTE, limit=12)
        assert len(first) == CONCURRENCY_START
        await finished(db, first, DOWN, NOW + MINUTE, NOW + HOUR)
        [probe] = await claim(db, MINUTE)
        assert await claim(db, MINUTE) == []
        await finished(db, [probe], OK, NOW + MINUTE)
        assert len(await claim(db, MINUTE)) == CONCURRENCY_START // 2 + 1

    async def test_a_webhook_url_is_signed_with_every_active_secret_or_not_sent(self, db: Database) -> None:
        url = "https://own.example/x"
        await with_endpoints(db, an_endpoint("whe_3", is_active=False), an_endpoint("whe_4", LIVE))
        unsigned = await emit_one(db, 1, None, url)
        assert await claim(db, MINUTE) == []
        _, [stored] = await db.webhook_events.of_payment(unsigned.reference)
        assert stored.status is DeliveryStatus.FAILED
        old: dict[str, Any] = {"previous_secret": b"old", "previous_secret_expires_at": NOW + HOUR}
        await put(db, an_endpoint("whe_1"), an_endpoint("whe_2", **old))
        await emit_one(db, 2, None, url)
        [one] = await claim(db, MINUTE)
        secrets = (("whe_1", b"sealed whe_1"), ("whe_2", b"sealed whe_2"), ("whe_2", b"old"))
        assert (one.url, one.secrets) == (url, secrets)


class InboxContract:
    async def test_an_inbound_event_enters_once(self, db: Database) -> None:
        event = an_inbound_event()
        elsewhere = replace(event, id="inb_3", environment=SANDBOX)
        others = [elsewhere, an_inbound_event("inb_4", provider="provider_b"), an_inbound_event("inb_5", b"e" * 32)]
        async with db.begin() as tx:
            asked = (event, replace(event, id="inb_2"), *others)
            assert [await tx.inbox.add(one) for one in asked] == [True, False, True, True, True]
        alone = an_inbound_event("inb_6", b"f" * 32)
        at_once = await asyncio.gather(*map(db.keep_event, (alone, alone, replace(event, id="inb_7"))))
        assert sorted(at_once) == [False, False, True], "as they come at once"
        kept = {event.id: event for event in await db.inbox.lock_due(NOW, 10)}
        assert kept == {one.id: one for one in (event, *others, alone)}

    async def test_an_inbound_event_is_due_until_it_is_handled(self, db: Database) -> None:
        event = an_inbound_event()
        later = replace(event, attempts=1, next_attempt_at=NOW + MINUTE)
        await db.inbox.add(event)
        assert [await db.inbox.lock_due(NOW + since, 10) for since in (-SECOND, 0 * SECOND)] == [[], [event]]
        assert [await db.inbox.count_due(NOW + since, 10) for since in (-SECOND, 0 * SECOND)] == [0, 1]
        await db.inbox.save(later)
        assert [await db.inbox.lock_due(NOW + since, 10) for since in (0 * SECOND, MINUTE)] == [[], [later]]
        await db.inbox.save(replace(later, next_attempt_at=None, handled_at=NOW, result="MOVED"))
        assert await db.inbox.lock_due(NOW + MINUTE, 10) == []

    async def test_a_refused_event_takes_the_place_of_the_one_before_in_its_slot(self, db: Database) -> None:

        place = ("provider_a", LIVE, SignatureFault.WRONG_SECRET, 7, "/provider_a/live")
        first = RefusedEvent(*place, b"d" * 32, 12, {"content-type": "application/json"}, NOW)
        again = replace(first, digest=b"e" * 32, received_at=NOW + SECOND)
        others = [
            replace(first, slot=8, received_at=NOW + MINUTE),
            replace(first, fault=SignatureFault.NO_SIGNATURE, received_at=NOW + 2 * MINUTE),
            replace(first, environment=SANDBOX, received_at=NOW + 3 * MINUTE),
        ]
        for event in (first, again):
            await db.keep_refused(event)
        await asyncio.gather(*map(db.keep_refused, others))
        assert await db.inbox.list_refused() == [*reversed(others), again]
        assert await db.inbox.purge_refused(NOW + MINUTE) == 2
        assert await db.inbox.list_refused() == [*reversed(others[1:])]

    async def test_health_is_kept_per_gateway_and_environment(self, db: Database) -> None:
        fresh = await db.health.lock("provider_a", LIVE)
        assert fresh == Health("provider_a", LIVE)
        await db.health.save(replace(fresh, faults=5, open_until=NOW + MINUTE, open_for=SECOND * 30))
        kept = await db.health.lock("provider_a", LIVE)
        assert kept == Health("provider_a", LIVE, 5, NOW + MINUTE, SECOND * 30)
        assert await db.health.lock("provider_a", SANDBOX) == Health("provider_a", SANDBOX)
        assert kept in await db.health.all()

    async def test_a_limit_holds_over_any_window(self, db: Database) -> None:
        limit, turn = RateLimit(3), NOW.replace(second=0, microsecond=0) + MINUTE
        hits = (turn - 2 * SECOND, turn - SECOND, turn - SECOND)
        assert [await db.count_hit("a", at, limit) for at in hits] == [None] * 3
        assert await db.count_hit("a", turn + SECOND, limit) == turn + 58 * SECOND
        assert await db.count_hit("b", turn, limit) is None
        # The refused one did not count, and the first has left the window.
        assert await db.count_hit("a", turn + 58 * SECOND, limit) is None
        assert await db.count_hit("a", turn + 58 * SECOND, limit) == turn + 59 * SECOND
        assert await db.count_hit("a", turn + 5 * MINUTE, limit) is None
        # By a clock that was ahead; the marks go when it is right again.
        assert [await db.count_hit("a", turn + 500 * MINUTE, limit) for _ in range(3)] == [None] * 3
        assert [await db.count_hit("a", turn + 6 * MINUTE, limit) for _ in range(3)] == [None] * 3
        assert await db.count_hit("a", turn + 6 * MINUTE, limit) == turn + 7 * MINUTE
        # Hits of one grain are counted together under a large limit.
        large = RateLimit(10 * MARKS_MAX)
        for n in range(20):
            assert await db.count_hit("c", NOW + n * large.grain / 4, large) is None
        assert await db.count_hit("c", NOW + MINUTE, replace(large, most=MARKS_MAX + 1)) is None

    async def test_the_store_says_that_its_schema_is_current(self, db: Database) -> None:
        assert await db.is_current()
        assert all(await db.versions())
