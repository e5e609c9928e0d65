"""The reconciler: every open payment is asked about on schedule, within a budget, by any number of workers."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from payagg.application import reconciliation
from payagg.application.reconciliation import HOLD
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import ASK_AFTER, ASK_JITTER, ASK_PAID_AFTER, ASK_SPREAD_MAX, LEASE, AttemptState
from payagg.domain.errors import Refusal
from payagg.domain.health import Health
from payagg.domain.payment import EXPIRED_REASON, Payment, Status
from payagg.domain.rate_limit import EPOCH
from payagg.entrypoints.dev.fake_providers import Fault, WebhookMode
from tests.support.provider_world import World

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def providers_send_no_events(world: World) -> None:
    world.fakes.paystack.book.webhooks = WebhookMode.NEVER
    world.fakes.payaza.book.webhooks = WebhookMode.NEVER


async def run_through(world: World, payment: Payment) -> int:
    """Runs the reconciler at each of the payment's due instants, to the end of the schedule; how many there were."""
    for asked in range(50):
        due = (await world.attempts(payment))[-1].next_ask_at
        if due is None:
            return asked
        world.clock.set(max(due, world.clock.now()))
        await world.services.reconciler.run_once()
    raise AssertionError("the schedule has no end")


async def test_a_payment_whose_event_was_lost_is_found_paid(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.pay(payment.reference)
    await world.services.reconciler.run_once()
    assert world.fakes.paystack.book.count("verify") == 0  # not due yet
    world.clock.move(ASK_AFTER[0] * (1 + ASK_JITTER))
    await world.services.reconciler.run_once()
    assert (await world.read(payment)).status is Status.SUCCESS
    world.clock.move(ASK_PAID_AFTER[0] - HOUR)
    await world.services.reconciler.run_once()
    assert world.fakes.paystack.book.count("verify") == 1


async def test_a_worker_that_starts_asks_at_once_about_what_was_in_the_air_and_then_keeps_to_the_schedule(
    world: World,
) -> None:
    paid, open_one = await world.handed_over(), await world.handed_over()
    world.fakes.paystack.pay(paid.reference)
    world.clock.move(timedelta(seconds=1))
    since = world.clock.now()
    later = await world.handed_over()
    for taken in (2, 0):
        assert await world.services.reconciler.run_at("provider_a", paid.environment, since) == taken
    assert (await world.read(paid)).status is Status.SUCCESS
    assert world.fakes.paystack.book.count("verify", later.reference) == 0
    [attempt] = await world.attempts(open_one)
    assert attempt.handed_off_at is not None
    assert attempt.next_ask_at is not None
    assert attempt.next_ask_at - attempt.handed_off_at >= ASK_AFTER[0]


async def test_what_was_in_the_air_is_asked_about_at_the_rate_of_all_asks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "RATE", 2)
    due, *ahead = [await world.handed_over() for _ in range(4)]
    world.clock.move(timedelta(seconds=1))
    [attempt] = await world.attempts(due)
    async with world.store.begin() as tx:
        await tx.payments.save_attempt(replace(attempt, next_ask_at=world.clock.now()), attempt.token)
    since = world.clock.now()
    for taken in (2, 2, 0):
        assert await world.services.reconciler.run_at("provider_a", due.environment, since) == taken
    assert world.fakes.paystack.book.calls.index(("verify", due.reference)) < min(
        world.fakes.paystack.book.calls.index(("verify", one.reference)) for one in ahead[1:]
    )


async def test_a_claim_whose_owner_died_is_asked_about_when_its_lease_ends(world: World) -> None:
    payment = await world.payment()
    await world.killed(payment, "P4")
    world.fakes.paystack.pay(payment.reference)
    await world.services.reconciler.run_at("provider_a", payment.environment, world.clock.now())
    assert (await world.read(payment)).status is not Status.SUCCESS  # its owner might be alive
    world.clock.move(LEASE)
    await world.services.reconciler.run_once()
    assert (await world.read(payment)).status is Status.SUCCESS


@pytest.mark.rule("checkout.14")
async def test_an_open_payment_is_asked_about_on_the_whole_schedule_and_then_expires_on_evidence(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.abandon(payment.reference)
    assert await run_through(world, payment) == len(ASK_AFTER)
    assert world.fakes.paystack.book.count("verify") == len(ASK_AFTER)
    ended = await world.read(payment)
    assert (ended.status, ended.failure_reason) == (Status.FAILED, EXPIRED_REASON)
    assert await world.history(payment) == ["PENDING", "FAILED"]


async def test_without_evidence_a_payment_stays_pending_and_is_named_once(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.charges[payment.reference].status = "ongoing"
    await run_through(world, payment)
    assert (await world.read(payment)).status is Status.PENDING
    assert [a.kind for a in await world.anomalies(payment)] == [AnomalyKind.NO_EVIDENCE]


async def test_a_provider_that_is_down_at_the_end_is_no_evidence(world: World) -> None:
    payment = await world.handed_over()
    world.clock.move(timedelta(hours=90))
    world.fakes.paystack.book.faults.extend([Fault.SERVER_ERROR])
    await world.services.reconciler.run_once()
    assert (await world.read(payment)).status is Status.PENDING
    assert [a.kind for a in await world.anomalies(payment)] == [AnomalyKind.NO_EVIDENCE]


async def test_two_workers_ask_once_about_each_payment(world: World) -> None:
    payments = [await world.handed_over() for _ in range(12)]
    world.clock.move(ASK_AFTER[0] * 2)
    other, reconciler = world.other_process(), world.services.reconciler
    book = world.fakes.paystack.book
    held = [attempt for share in reconciler.shares() for attempt in await reconciler._due(*share, EPOCH)]
    assert len(held) == len(payments)
    assert await other.reconciler.run_once() == 0
    world.clock.move(HOLD)
    await asyncio.gather(*(w.reconciler.run_once() for w in (world.services, other, world.services, other)))
    assert {payment.reference: book.count("verify", payment.reference) for payment in payments} == {
        payment.reference: 1 for payment in payments
    }


async def test_after_two_hours_of_downtime_the_oldest_are_asked_first_within_the_rate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "RATE", 20)
    payments = []
    for _ in range(20 + 5):
        payments.append(await world.handed_over())
        world.clock.move(timedelta(seconds=30))
    late = await world.handed_over("provider_b")
    world.clock.move(timedelta(hours=2))
    assert await world.services.reconciler.oldest_unasked() is not None
    await world.services.reconciler.run_once()
    book = world.fakes.paystack.book
    assert {reference for name, reference in book.calls if name == "verify"} == {
        payment.reference for payment in payments[:20]
    }
    # Another provider's payments do not wait behind the backlog.
    assert world.fakes.payaza.book.count("query", late.reference) == 1
    await world.services.reconciler.run_once()
    assert book.count("verify") == 20 + 5
    # Missed instants are skipped: a payment asked now is not due again for the ones in between.
    assert await world.services.reconciler.run_once() == 0
    assert await world.services.reconciler.oldest_unasked() is None


async def test_an_unknown_attempt_and_a_dead_claim_are_asked_about_too(world: World) -> None:
    unknown, dead = await world.payment(), await world.payment()
    world.fakes.paystack.book.faults.append(Fault.RESET)
    with pytest.raises(Exception):  # noqa: B017, PT011 - the refusal is another test's business
        await world.process(unknown)
    await world.killed(dead, "P4")
    for payment in (unknown, dead):
        world.fakes.paystack.pay(payment.reference)
    world.clock.move(LEASE + ASK_AFTER[0] * 2)
    await world.services.reconciler.run_once()
    assert [(await world.read(p)).status for p in (unknown, dead)] == [Status.SUCCESS, Status.SUCCESS]


async def test_a_hand_off_recorded_while_the_provider_was_asked_is_kept(world: World) -> None:
    """The ask's own bookkeeping must not write an old copy of the attempt back."""
    payment = await world.handed_over()
    stale = (await world.attempts(payment))[0]
    copy = replace(stale, state=AttemptState.CLAIMED, hand_off=None)
    await world.services.reconciler._schedule(copy, None, world.clock.now())
    assert (await world.attempts(payment))[0].hand_off == stale.hand_off


async def test_an_unhealthy_provider_is_left_alone_until_its_pause_ends(world: World) -> None:
    payments = [await world.handed_over() for _ in range(Health.FAULTS_MAX + 3)]
    world.clock.move(ASK_AFTER[0] * 2)
    world.fakes.paystack.book.faults.extend([Fault.SERVER_ERROR] * 100)
    for _ in range(3):
        await world.services.reconciler.run_once()
        world.clock.move(timedelta(seconds=1))
    asked = 100 - len(world.fakes.paystack.book.faults)
    assert Health.FAULTS_MAX <= asked <= len(payments)
    world.fakes.paystack.book.faults.clear()
    for payment in payments:
        world.fakes.paystack.pay(payment.reference)
    for _ in range(20):
        world.clock.move(timedelta(minutes=3))
        await world.services.reconciler.run_once()
    assert {(await world.read(payment)).status for payment in payments} == {Status.SUCCESS}


async def test_an_ask_that_could_not_be_made_stays_overdue_for_the_metric(world: World) -> None:
    payment = await world.handed_over()
    due = (await world.attempts(payment))[-1].next_ask_at
    assert due is not None
    async with world.store.begin() as tx:
        health = await tx.health.lock("provider_a", payment.environment)
        pause = Health.FIRST_PAUSE
        await tx.health.save(replace(health, faults=Health.FAULTS_MAX, open_until=due + HOUR + pause, open_for=pause))
    world.clock.set(due + HOUR)
    await world.services.reconciler.run_once()
    assert await world.services.reconciler.oldest_unasked() == due
    assert world.fakes.paystack.book.count("verify") == 0


async def test_a_declined_card_at_the_providers_page_is_final_only_when_the_window_has_closed(world: World) -> None:
    payment, given_up = await world.handed_over(), await world.handed_over()
    for one in (payment, given_up):
        world.fakes.paystack.decline(one.reference)
    world.clock.move(timedelta(minutes=5))
    await world.services.reconciler.run_once()
    assert world.fakes.paystack.book.count("verify") == 2
    assert (await world.read(payment)).status is Status.PENDING
    world.fakes.paystack.pay(payment.reference)  # with another card, on the same page
    world.clock.move(HOUR)
    await world.services.reconciler.run_once()
    assert (await world.read(payment)).status is Status.SUCCESS
    assert (await world.read(given_up)).status is Status.FAILED
    assert await world.anomalies() == []


@pytest.mark.rule("description.5")
async def test_a_late_success_is_found_without_its_event_to_the_end_of_the_schedule(world: World) -> None:
    declined, expired = await world.handed_over(), await world.payment()
    world.fakes.paystack.book.faults.append(Fault.RESET)
    with pytest.raises(Refusal):
        await world.process(expired)  # its charge was made and our answer lost; nobody was sent there
    world.fakes.paystack.decline(declined.reference)
    world.clock.move(HOUR)
    await world.services.settlement.expire_due()
    await world.services.reconciler.run_once()
    for payment in (declined, expired):
        assert (await world.read(payment)).status is Status.FAILED
        world.fakes.paystack.pay(payment.reference)
    world.clock.move(timedelta(hours=72))
    await world.services.reconciler.run_once()
    for payment in (declined, expired):
        assert [a.kind for a in await world.anomalies(payment)] == [AnomalyKind.LATE_SUCCESS]
        assert (await world.read(payment)).status is Status.FAILED
        [attempt] = await world.attempts(payment)
        assert attempt.confirmed_at is not None
        spread = attempt.next_ask_at - attempt.confirmed_at - ASK_PAID_AFTER[0] if attempt.next_ask_at else None
        assert spread is not None
        assert timedelta(0) <= spread <= ASK_SPREAD_MAX


@pytest.mark.parametrize("alter", [{"mode": "live"}, {"reference": "PAY-20250131-AAAAAA"}])
async def test_evidence_about_something_else_expires_nothing(world: World, alter: dict[str, object]) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.abandon(payment.reference)
    world.fakes.paystack.book.alter = alter
    await run_through(world, payment)
    assert (await world.read(payment)).status is Status.PENDING
    assert AnomalyKind.NO_EVIDENCE in [a.kind for a in await world.anomalies(payment)]


async def test_a_payment_that_succeeded_is_asked_about_a_day_later(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.pay(payment.reference)
    assert (await world.services.verification.verify(payment.reference)).status is Status.SUCCESS
    [attempt] = await world.attempts(payment)
    assert attempt.next_ask_at == world.clock.now() + ASK_PAID_AFTER[0]
    world.clock.move(ASK_PAID_AFTER[0] - timedelta(seconds=1))
    assert await world.services.reconciler.oldest_unasked() is None
    assert await world.services.reconciler.run_once() == 0
    world.clock.move(timedelta(seconds=1))
    assert await world.services.reconciler.run_once() == 1
