"""Personal data ends: when it is old, and when a payer asks; and only what can still be paid keeps its payer."""

import json
from datetime import timedelta
from typing import Any

import pytest

from payagg.adapters.memory import MemoryStore
from payagg.application.repositories import ProviderEvent
from payagg.application.retention import BATCH, WALK, Erasure, Retention
from payagg.domain.checks import revised
from payagg.domain.errors import Refusal
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment
from payagg.testing.builders import AN_ADMIN, NOW, a_payment, an_event
from payagg.testing.clocks import ManualClock, SeededEntropy

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)
EMAIL = "ada@example.com"


class RetentionWorld:
    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock(NOW)
        self.retention = Retention(self.store, self.clock, SeededEntropy())

    def payments(self, *payments: Payment) -> None:
        self.store.state.payments.update({payment.reference: payment for payment in payments})

    def left(self) -> list[str]:
        """References of payments that still say who pays."""
        return [payment.reference for payment in self.store.state.payments.values() if payment.has_payer]


def numbered(number: int, **fields: Any) -> Payment:
    return revised(a_payment(reference=f"PAY-20250131-{number:06d}", customer_email=EMAIL), **fields)


def ended(number: int, days_ago: int = 400, **fields: Any) -> Payment:
    return numbered(number, status=Status.SUCCESS, settled_at=NOW - days_ago * DAY, **fields)


async def test_payments_that_ended_long_ago_lose_their_payer_and_nothing_else() -> None:
    world = RetentionWorld()
    old = ended(1, 366, customer_name="Ada", callback_url="https://shop.example/")
    world.payments(old, ended(2, 365), ended(3, 364), numbered(4, status=Status.PENDING, created_at=NOW - 999 * DAY))
    assert await world.retention.clear_payers(365 * DAY, by=AN_ADMIN) == 1
    assert world.store.state.payments[old.reference] == old.without_payer()
    assert len(world.left()) == 3
    assert await world.retention.clear_payers(365 * DAY, by=AN_ADMIN) == 0


async def test_who_cleared_a_payer_is_on_record_and_the_payer_is_not() -> None:
    world = RetentionWorld()
    world.payments(ended(1), ended(2), ended(3, customer_email="ben@example.com"))
    await world.retention.erase(EMAIL, by=AN_ADMIN)
    await world.retention.clear_payers(DAY, by=AN_ADMIN)
    entries = sorted(world.store.state.audit.values(), key=lambda entry: (entry.action, entry.object_id))
    assert [(entry.action, entry.object_id, entry.subject) for entry in entries] == [
        ("payment.erase", "PAY-20250131-000001", AN_ADMIN.subject),
        ("payment.erase", "PAY-20250131-000002", AN_ADMIN.subject),
        ("retention.clear", "PAY-20250131-000003 ... PAY-20250131-000003", AN_ADMIN.subject),
    ]
    assert "example.com" not in repr(entries)


async def test_more_than_a_batch_is_cleared_batch_by_batch() -> None:
    world = RetentionWorld()
    world.payments(*(ended(n) for n in range(BATCH + 3)))
    assert await world.retention.clear_payers(DAY, by=AN_ADMIN) == BATCH + 3
    assert world.left() == []


async def test_one_payer_is_erased_from_all_that_can_no_longer_be_paid() -> None:
    world = RetentionWorld()
    stranger = a_payment(reference="PAY-20250131-ZZZZZZ", customer_email="bob@example.com")
    world.payments(
        ended(1, 0),
        numbered(2, status=Status.PENDING, expires_at=NOW),
        numbered(3, expires_at=NOW + DAY),
        stranger,
        *(a_payment(reference=f"PAY-20250201-{n:06d}") for n in range(WALK)),
        a_payment(reference="PAY-20250202-000001", customer_email="ADA@example.com", now=NOW - DAY),
    )
    assert await world.retention.erase("Ada@Example.com", by=AN_ADMIN) == Erasure(cleared=3, waiting=1)
    assert world.left() == ["PAY-20250131-000003", stranger.reference]
    world.clock.move(DAY)
    assert await world.retention.erase(EMAIL, by=AN_ADMIN) == Erasure(cleared=1, waiting=0)
    assert await world.retention.erase(EMAIL, by=AN_ADMIN) == Erasure(cleared=0, waiting=0)


async def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        await RetentionWorld().retention.erase("%", by=AN_ADMIN)
    assert refused.value.field == "email"


async def test_an_event_keeps_every_byte_but_the_payers() -> None:
    world = RetentionWorld()
    payment = ended(1)
    told = {
        "reference": payment.reference,
        "amount": 9007199254740991,
        "customerEmail": EMAIL,
        "metadata": {"a": EMAIL},
    }
    body = json.dumps({"id": "evt_1", "sequence": 2, "data": told}, separators=(",", ":")).encode()
    event = an_event(reference=payment.reference, body=body)
    world.payments(payment)
    world.store.state.events[event.reference, event.sequence] = event
    await world.retention.clear_payers(DAY, by=AN_ADMIN)
    expected = body.replace(json.dumps(EMAIL).encode(), b"null", 1).replace(b'{"a":"ada@example.com"}', b"null")
    assert [kept.body for kept in world.store.state.events.values()] == [expected]


async def test_the_inbox_forgets_events_half_a_year_after_they_came() -> None:
    world = RetentionWorld()
    for n, (days, is_handled) in enumerate(((181, True), (181, False), (180, True))):
        at = NOW - days * DAY
        handled_at = at if is_handled else None
        event = ProviderEvent(f"inb_{n}", "provider_a", Environment.LIVE, bytes([n]), b"", at, handled_at=handled_at)
        world.store.state.inbox[event.id] = event
    assert await world.retention.forget_events() == 1
    assert set(world.store.state.inbox) == {"inb_1", "inb_2"}, "what was never handled stays for people to find"


async def test_a_key_is_known_for_two_years_after_its_payment_ended_and_always_while_it_is_open() -> None:
    world = RetentionWorld()
    old, young = (ended(n, days, idempotency_key=f"key {n}") for n, days in ((1, 731), (2, 730)))
    still_open = numbered(3, status=Status.PENDING, created_at=NOW - 999 * DAY, idempotency_key="key 3")
    for payment in (old, young, still_open):
        async with world.store.begin() as tx:
            assert await tx.payments.add(payment)
    assert await world.retention.forget_keys() == 1
    assert await world.retention.forget_keys() == 0
    assert {key for _, _, key in world.store.state.idempotency_keys} == {"key 2", "key 3"}
    again = numbered(4, idempotency_key="key 1")
    assert await world.store.add_payment(again) == (again, True), "after its end the key makes a new payment"
    assert (await world.store.add_payment(numbered(5, idempotency_key="key 3")))[0] == still_open


async def test_the_inbox_keeps_bodies_for_thirty_days_after_they_were_handled() -> None:
    world = RetentionWorld()
    for n, days in enumerate((31, 30, 29)):
        at = NOW - days * DAY
        event = ProviderEvent(f"inb_{n}", "provider_a", Environment.LIVE, bytes([n]), b"{}", at, handled_at=at)
        world.store.state.inbox[event.id] = event
    assert await world.retention.empty_inbox() == 1
    assert [event.body for event in world.store.state.inbox.values()] == [b"", b"{}", b"{}"]
    assert await world.retention.empty_inbox() == 0
