"""What every Store promises about the end of personal data: what is asked for is cleared, and nothing beside it."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from payagg_testing.builders import DAY, NOW, a_payment, an_attempt, an_event, an_id

from payagg.application.ports.providers import ProviderEvent
from payagg.domain.attempt import AttemptState
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment, Trigger
from payagg.domain.payment_search import PaymentFilter
from payagg.domain.values import Environment
from tests.contracts.database import Database

PAYER: dict[str, Any] = {
    "customer_email": "Ada@Example.com",
    "customer_name": "Ada",
    "customer_phone": "+234",
    "metadata": {"a": 1},
    "fingerprint": b"f" * 32,
}


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


class PersonalDataContract:
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
