"""Personal data ends: when it is old, and when a payer asks; and only what can still be paid keeps its payer."""

import json
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, DAY, LIVE, NOW, SANDBOX, a_payment, an_event, an_id
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from payagg.application.ports.providers import ProviderEvent
from payagg.application.upkeep.retention import BATCH, WALK, Erasure, Retention
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment
from tests.support.refusals import refused_with

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


@pytest.fixture
def world() -> RetentionWorld:
    return RetentionWorld()


def numbered(number: int, **fields: Any) -> Payment:
    return with_changes(a_payment(reference=f"PAY-20250131-{number:06d}", customer_email=EMAIL), **fields)


def ended(number: int, days_ago: int = 400, **fields: Any) -> Payment:
    return numbered(number, status=Status.SUCCESS, settled_at=NOW - days_ago * DAY, **fields)


@pytest.mark.rule("personal-data.5")
async def test_payments_that_ended_long_ago_lose_their_payer_and_nothing_else(world: RetentionWorld) -> None:
    old = ended(1, 366, customer_name="Ada", callback_url="https://shop.example/")
    world.payments(old, ended(2, 365), ended(3, 364), numbered(4, status=Status.PENDING, created_at=NOW - 999 * DAY))
    assert await world.retention.clear_payers(365 * DAY, by=AN_ADMIN) == 1
    assert world.store.state.payments[old.reference] == old.without_payer()
    assert len(world.left()) == 3
    assert await world.retention.clear_payers(365 * DAY, by=AN_ADMIN) == 0


async def test_who_cleared_a_payer_is_on_record_and_the_payer_is_not(world: RetentionWorld) -> None:
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


async def test_more_than_a_batch_is_cleared_batch_by_batch(world: RetentionWorld) -> None:
    world.payments(*(ended(n) for n in range(BATCH + 3)))
    assert await world.retention.clear_payers(DAY, by=AN_ADMIN) == BATCH + 3
    assert world.left() == []


@pytest.mark.rule("personal-data.6")
async def test_one_payer_is_erased_from_all_that_can_no_longer_be_paid(world: RetentionWorld) -> None:
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
    assert (await refused_with(world.retention.erase("%", by=AN_ADMIN)))[1] == "email"


async def test_an_event_keeps_every_byte_but_the_payers(world: RetentionWorld) -> None:
    payment = ended(1)
    told = {"reference": payment.reference, "amount": 2**53 - 1, "customerEmail": EMAIL, "metadata": {"a": EMAIL}}
    body = json.dumps({"id": "evt_1", "sequence": 2, "data": told}, separators=(",", ":")).encode()
    event = an_event(reference=payment.reference, body=body)
    world.payments(payment)
    world.store.state.events[event.reference, event.sequence] = event
    await world.retention.clear_payers(DAY, by=AN_ADMIN)
    expected = body.replace(json.dumps(EMAIL).encode(), b"null", 1).replace(b'{"a":"ada@example.com"}', b"null")
    assert [kept.body for kept in world.store.state.events.values()] == [expected]


@pytest.mark.rule("personal-data.2")
async def test_a_key_is_known_until_two_years_after_the_end_of_its_payment(world: RetentionWorld) -> None:
    old, young = (ended(n, days, idempotency_key=f"key {n}") for n, days in ((1, 731), (2, 730)))
    still_open = numbered(3, status=Status.PENDING, created_at=NOW - 999 * DAY, idempotency_key="key 3")
    for payment in (old, young, still_open):
        assert await world.store.transaction.payments.add(payment)
    assert await world.retention.forget_keys() == 1
    assert await world.retention.forget_keys() == 0
    assert {key for _, _, key in world.store.state.idempotency_keys} == {"key 2", "key 3"}
    again = numbered(4, idempotency_key="key 1")
    assert await world.store.add_payment(again) == (again, True), "after its end the key makes a new payment"
    assert (await world.store.add_payment(numbered(5, idempotency_key="key 3")))[0] == still_open


@pytest.mark.rule("personal-data.1")
async def test_the_inbox_keeps_bodies_for_thirty_days_and_handled_events_for_half_a_year(world: RetentionWorld) -> None:
    for days, is_handled in ((181, True), (181, False), (180, True), (31, True), (30, True), (29, True)):
        at = NOW - days * DAY
        id, handled_at = f"inb_{days}{'' if is_handled else '_open'}", at if is_handled else None
        event = ProviderEvent(id, "provider_a", Environment.LIVE, id.encode(), b"{}", at, handled_at=handled_at)
        world.store.state.inbox[id] = event
    assert [await world.retention.forget_events() for _ in range(2)] == [1, 0]
    assert [await world.retention.empty_inbox() for _ in range(2)] == [2, 0]
    bodies = {event.id: event.body for event in world.store.state.inbox.values()}
    # What was never handled stays for people to find.
    assert bodies == {"inb_181_open": b"{}", "inb_180": b"", "inb_31": b"", "inb_30": b"{}", "inb_29": b"{}"}


@pytest.mark.rule("personal-data.8")
async def test_closed_anomalies_of_sandbox_end_after_a_year_and_facts_of_money_do_not(world: RetentionWorld) -> None:
    tx, over = world.store.transaction, NOW - 365 * DAY
    for number, (environment, at) in enumerate(((SANDBOX, over), (SANDBOX, over - DAY), (LIVE, over - DAY))):
        fact = Anomaly(an_id("anm", number), None, AnomalyKind.MISMATCH, "verify", {}, at, environment=environment)
        await tx.anomalies.add(fact)
        await tx.anomalies.save(fact.close("ada", "Done.", at))
    assert [await world.retention.forget_anomalies() for _ in range(2)] == [1, 0]
    assert set(world.store.state.anomalies) == {an_id("anm", 0), an_id("anm", 2)}
