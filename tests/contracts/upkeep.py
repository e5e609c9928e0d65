"""What every Store promises of upkeep: the end of personal data, what lies sealed, and instants that a clock which was
ahead has left behind."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from payagg_testing.builders import (
    DAY,
    NOW,
    REFERENCE,
    SANDBOX,
    a_business,
    a_delivery,
    a_gateway,
    a_payment,
    an_attempt,
    an_endpoint,
    an_event,
    an_id,
)

from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.upkeep import SealedBlob, SealedKind
from payagg.domain.attempt import LEASE, AttemptState
from payagg.domain.checks import with_changes
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import Payment, Trigger
from payagg.domain.payment_search import PaymentFilter
from payagg.domain.values import Environment
from tests.contracts.database import Database, put

PAYER: dict[str, Any] = {
    "customer_email": "Ada@Example.com",
    "customer_name": "Ada",
    "customer_phone": "+234",
    "metadata": {"a": 1},
    "fingerprint": b"f" * 32,
}


OFF = GatewayStatus.DISABLED
OF = {
    SealedKind.GATEWAY_CREDENTIALS: "credentials",
    SealedKind.REPLACED_SECRETS: "replaced_secrets",
    SealedKind.ENDPOINT_CURRENT: "secret",
    SealedKind.ENDPOINT_PREVIOUS: "previous_secret",
}
AHEAD = timedelta(days=3)
LIMIT = 100


def named(number: int) -> str:
    return f"PAY-20250131-00000{number}"


async def with_payments(db: Database, *payments: Payment) -> None:
    """Payments as they are; those that ended are moved there."""
    for payment in payments:
        opened = with_changes(payment, settled_at=None)
        await db.add_payment(opened)
        if payment.settled_at is not None:
            moved, transition = opened.move(Trigger.SUCCEED, payment.settled_at, actor="test")
            assert transition is not None
            await db.payments.save(moved, transition)


def ended(at: datetime, **fields: Any) -> Payment:
    return with_changes(a_payment(**fields), settled_at=at)


async def leave_behind(db: Database, at: datetime) -> None:
    """An attempt that was asked about, an event that is to be delivered, and one that a provider sent, all at `at`."""
    await put(db, a_business(), an_endpoint(), a_payment())
    handed = an_attempt(state=AttemptState.HANDED_OFF, now=at)
    await db.attempts.add(with_changes(handed, last_ask_at=at))
    event = an_event(created_at=at)
    await db.webhook_events.emit(event, [a_delivery(event)])
    received = ProviderEvent("inb_1", "provider_a", SANDBOX, b"1" * 32, b"{}", at, 1, at + timedelta(seconds=30))
    await db.inbox.add(received)


class UpkeepContract:
    async def test_payments_that_ended_before_and_have_a_payer_are_found_oldest_first(self, db: Database) -> None:
        await with_payments(
            db,
            ended(NOW + DAY, reference="PAY-20250201-000001", customer_phone="1"),
            ended(NOW, reference=named(2), metadata={"a": 1}),
            ended(NOW, reference=named(3)),
            a_payment(reference=named(4), customer_email="a@b.example"),
            ended(NOW + 2 * DAY, reference=named(5), customer_name="Ada"),
        )
        asked = ((NOW + 2 * DAY, 9), (NOW + 2 * DAY, 1), (NOW, 9))
        found = [await db.upkeep.settled_with_payer(*one) for one in asked]
        assert found == [[named(2), "PAY-20250201-000001"], [named(2)], []]

    async def test_a_payer_is_found_by_steps_in_any_letter_case(self, db: Database) -> None:
        own = {2: "ada@example.COM", 3: "ada@example.com.ng", 4: "ADA@example.com"}
        await with_payments(db, *(a_payment(reference=named(n), customer_email=own.get(n)) for n in range(1, 6)))
        steps = [await db.upkeep.of_payer("Ada@Example.com", after, 3) for after in ("", named(3), named(5))]
        assert steps == [([named(2)], named(3)), ([named(4)], named(5)), ([], None)]

    async def test_clearing_a_payer_changes_nothing_beside(self, db: Database) -> None:
        paid = ended(NOW, reference=named(1), callback_url="https://shop.example/", **PAYER)
        other = a_payment(reference=named(2), **PAYER)
        await with_payments(db, paid, other)
        attempt = an_attempt(paid, state=AttemptState.HANDED_OFF)
        await db.attempts.add(attempt)
        before = await db.payments.get(named(1))
        assert before is not None
        await db.upkeep.clear_payer([named(1), named(1)])
        assert await db.payments.get(named(1)) == before.without_payer()
        assert await db.payments.get(named(2)) == other
        assert attempt.hand_off is not None
        left = with_changes(attempt, hand_off=with_changes(attempt.hand_off, checkout_url=""))
        assert await db.attempts.of_payment(named(1)) == [left]
        assert await db.upkeep.settled_with_payer(NOW + DAY, 9) == []

    async def test_keys_of_payments_that_ended_before_are_free_again(self, db: Database) -> None:
        old = [ended(NOW + n * DAY, reference=f"PAY-2025013{n}-000001", idempotency_key=f"key {n}") for n in range(3)]
        open_one = a_payment(reference="PAY-20250101-000009", idempotency_key="open")
        await with_payments(db, *old, open_one)

        async def holder(key: str) -> str | None:
            found = await db.find_original(open_one.business_id, open_one.environment, key)
            return found.reference if found is not None else None

        assert await db.upkeep.forget_keys(NOW + 2 * DAY, 1) == 1
        assert [await holder(f"key {n}") for n in range(3)] == [None, old[1].reference, old[2].reference]
        assert [await db.upkeep.forget_keys(NOW + 2 * DAY, 9) for _ in range(2)] == [1, 0]
        assert [await holder(key) for key in ("key 1", "key 2", "open")] == [None, old[2].reference, open_one.reference]
        again = a_payment(reference="PAY-20250301-000001", idempotency_key="key 0")
        assert await db.add_payment(again) == (again, True)
        first = await db.find_payment(old[0].reference)
        assert first is not None
        assert first.idempotency_key == "key 0"
        wanted = PaymentFilter(open_one.business_id, idempotency_key="key 0")
        found, _ = await db.payment_search.page(wanted, NOW, None, 9)
        assert [payment.reference for payment in found] == [again.reference]

    async def test_bodies_of_events_are_replaced_and_nothing_beside(self, db: Database) -> None:
        large = b'{"data":{"metadata":{"note":"%s"},"amount":1}}' % (b"n" * 9_000)
        first = an_event(an_id("evt", 1), 1, reference=named(1), body=large)
        second = an_event(an_id("evt", 2), 2, reference=named(1), body=large.replace(b"1", b"2"))
        other = an_event(an_id("evt", 3), 1, reference=named(2))
        for event in (first, second, other):
            await db.webhook_events.emit(event, [])
        found = await db.webhook_events.of_payments([named(1)])
        assert sorted(found, key=lambda event: event.id) == [first, second]
        await db.webhook_events.save_bodies([replace(second, body=b"{}")])
        assert (await db.webhook_events.of_payment(named(1)))[0] == [first, replace(second, body=b"{}")]
        assert (await db.webhook_events.of_payment(named(2)))[0] == [other]

    async def test_bodies_of_events_handled_before_are_emptied(self, db: Database) -> None:
        def arrived(number: int, handled: int | None) -> ProviderEvent:
            at = None if handled is None else NOW + handled * DAY
            id, due, result = f"inb_{number}", None if at else NOW, "MOVED" if at else None
            live, digest = Environment.LIVE, bytes([number])
            return ProviderEvent(id, "provider_a", live, digest, b"{}", NOW, 1, due, at, result)

        waiting = arrived(4, None)
        for event in (arrived(1, 2), arrived(2, 0), arrived(3, 1), waiting):
            assert await db.inbox.add(event)
        assert [await db.inbox.empty(NOW + 2 * DAY, most) for most in (1, 9, 9)] == [1, 1, 0]
        assert await db.inbox.lock_due(NOW, 9) == [waiting]
        # The digest stays, so the same event is known.
        assert not await db.inbox.add(arrived(2, 0))

    async def test_handled_events_that_came_before_are_removed(self, db: Database) -> None:
        def arrived(days: int, *, handled: bool = True) -> ProviderEvent:
            at = NOW + days * DAY
            digest, handled_at, due = bytes([days, handled]), at if handled else None, None if handled else at
            drawn = f"inb_{int(at.timestamp() * 1000):012x}{handled:d}"
            return ProviderEvent(drawn, "provider_a", Environment.LIVE, digest, b"", at, 1, due, handled_at, None)

        waiting = arrived(0, handled=False)
        for event in (arrived(0), arrived(1), arrived(2), waiting):
            assert await db.inbox.add(event)
        assert await db.inbox.remove(NOW + 2 * DAY, "", 1) == (0, waiting.id)
        assert await db.inbox.remove(NOW + 2 * DAY, waiting.id, 1) == (1, arrived(0).id)
        assert await db.inbox.remove(NOW + 2 * DAY, arrived(0).id, 9) == (1, arrived(1).id)
        assert await db.inbox.remove(NOW + 2 * DAY, "", 9) == (0, waiting.id)
        assert await db.inbox.remove(NOW + 2 * DAY, waiting.id, 9) == (0, None)
        assert await db.inbox.lock_due(NOW, 9) == [waiting]
        assert await db.inbox.add(arrived(0)), "it is new again"
        assert not await db.inbox.add(arrived(2))

    async def _with_blobs(self, db: Database) -> None:
        """Two gateways and two endpoints, of which each first one has every blob; one endpoint is removed."""
        both: dict[str, Any] = {"credentials": b"c1", "replaced_secrets": b"r1", "replaced_secrets_until": NOW}
        rotated: dict[str, Any] = {"secret": b"s1", "previous_secret": b"p1", "previous_secret_expires_at": NOW}
        await put(
            db,
            a_business(),
            a_gateway("acme", OFF, **both),
            a_gateway("bold", OFF, credentials=None),
            an_endpoint("whe_1", **rotated),
            an_endpoint("whe_2", secret=b"s2"),
        )
        await db.endpoints.remove("whe_2", NOW)

    async def test_sealed_things_are_listed_by_kind_in_pages(self, db: Database) -> None:
        await self._with_blobs(db)
        expected = {
            SealedKind.GATEWAY_CREDENTIALS: [SealedBlob("gw_acme", b"c1")],
            SealedKind.REPLACED_SECRETS: [SealedBlob("gw_acme", b"r1")],
            SealedKind.ENDPOINT_CURRENT: [SealedBlob("whe_1", b"s1"), SealedBlob("whe_2", b"s2")],
            SealedKind.ENDPOINT_PREVIOUS: [SealedBlob("whe_1", b"p1")],
        }
        for kind, blobs in expected.items():
            assert await db.upkeep.sealed_blobs(kind, "", 100) == blobs
            assert await db.upkeep.sealed_blobs(kind, "", 1) == blobs[:1]
            assert await db.upkeep.sealed_blobs(kind, blobs[0].owner_id, 100) == blobs[1:]

    @pytest.mark.parametrize("kind", SealedKind)
    async def test_a_blob_is_replaced_only_where_it_still_is_the_one_seen(self, db: Database, kind: SealedKind) -> None:
        await self._with_blobs(db)
        [one, *_] = await db.upkeep.sealed_blobs(kind, "", 100)
        gateway, endpoint = await db.gateways.get("gw_acme"), await db.endpoints.lock("biz_1", "whe_1")
        assert not await db.upkeep.reseal(kind, one.owner_id, b"another", b"new")
        assert not await db.upkeep.reseal(kind, "unknown", one.blob, b"new")
        assert await db.upkeep.reseal(kind, one.owner_id, one.blob, b"new")
        assert not await db.upkeep.reseal(kind, one.owner_id, one.blob, b"newer")
        # Nothing else of the owner has changed.
        new: dict[str, Any] = {OF[kind]: b"new"}
        is_gateways = one.owner_id.startswith("gw_")
        assert gateway is not None
        assert endpoint is not None
        assert await db.gateways.get("gw_acme") == (replace(gateway, **new) if is_gateways else gateway)
        stored = await db.endpoints.lock("biz_1", "whe_1")
        assert stored == (endpoint if is_gateways else replace(endpoint, **new))

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
