"""The reconciler on the memory store: whom it asks when, and what the end of the asking does."""

from datetime import timedelta
from itertools import product

import pytest
from payagg_testing.builders import LIVE, SANDBOX
from payagg_testing.clocks import START, SeededEntropy
from payagg_testing.state_machine.system import Said

from payagg.application.payments.expiry import sweep_expired
from payagg.application.payments.status_checks import HOLD, RATE
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import (
    CHECK_AFTER,
    CHECK_PAID_AFTER,
    LEASE,
    RETRY_LAST_EVERY,
    RETRY_LAST_FOR,
    AttemptState,
    Charge,
)
from payagg.domain.payment import CHECKOUT_TTL, EXPIRED_REASON, PAYMENT, Status
from payagg.domain.report import TRIGGER_FOR, FaultKind, Outcome, ProviderReport
from payagg.domain.values import Environment
from tests.support.memory_shop import SLUGS, MemoryShop
from tests.support.refusals import refused_with
from tests.support.state_machine.scripted import PunctualEntropy


@pytest.fixture
async def shop() -> MemoryShop:
    return await MemoryShop(entropy=PunctualEntropy(SeededEntropy())).open()


async def to_the_end(shop: MemoryShop, reference: str) -> list[timedelta]:
    """When the reconciler asked, counted from the start; the clock goes from one instant that is due to the next."""
    asked: list[timedelta] = []
    while True:
        due = [attempt.next_ask_at for attempt in await shop.attempts(reference) if attempt.next_ask_at is not None]
        if not due:
            return asked
        shop.clock.set(min(due) - timedelta(milliseconds=1))
        assert await shop.reconciler.run_once() == 0
        shop.clock.set(min(due))
        before = len(shop.a.fetched)
        assert await shop.reconciler.run_once() == 1
        asked += [shop.clock.now() - START] * (len(shop.a.fetched) - before)


@pytest.mark.rule("checkout.14")
async def test_an_open_payment_is_asked_about_on_schedule_and_expires_on_evidence(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.says(Outcome.UNPAID)
    assert await to_the_end(shop, reference) == list(CHECK_AFTER)
    payment = await shop.payment(reference)
    assert (payment.status, payment.failure_reason) == (Status.FAILED, EXPIRED_REASON)
    assert payment.settled_at == START + CHECK_AFTER[-1], "and not at an ask before the last"
    [attempt] = await shop.attempts(reference)
    assert (attempt.asks, attempt.last_ask_at) == (len(CHECK_AFTER), shop.clock.now())


async def test_a_success_without_its_event_is_found_and_then_asked_about_seldom(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    paid = CHECK_AFTER[0]
    assert await to_the_end(shop, reference) == [paid, *(paid + after for after in CHECK_PAID_AFTER)]
    assert (await shop.payment(reference)).status is Status.SUCCESS
    moves = await shop.store.transaction.payments.transitions(reference)
    assert [one.actor for one in moves] == ["payer", "reconciler"]


async def test_the_last_check_of_a_paid_charge_is_made_again_until_it_is_answered(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    await shop.verification.verify(reference)
    shop.a.fetch_fault = FaultKind.TIMEOUT
    shop.clock.set(START + CHECK_PAID_AFTER[-1])
    for _ in range(2):
        assert await shop.reconciler.run_once() == 1
        [attempt] = await shop.attempts(reference)
        assert attempt.next_ask_at == shop.clock.now() + RETRY_LAST_EVERY
        shop.clock.move(RETRY_LAST_EVERY)
    shop.a.fetch_fault = None
    shop.says(Outcome.REVERSED)
    assert await shop.reconciler.run_once() == 1
    assert await shop.anomalies() == [AnomalyKind.LATE_REVERSAL]
    [attempt] = await shop.attempts(reference)
    assert attempt.next_ask_at is None
    lost = await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    await shop.verification.verify(lost)
    shop.a.fetch_fault = FaultKind.TIMEOUT
    shop.clock.move(CHECK_PAID_AFTER[-2])
    await shop.reconciler.run_once()
    shop.clock.move(CHECK_PAID_AFTER[-1] - CHECK_PAID_AFTER[-2] + RETRY_LAST_FOR)
    await shop.reconciler.run_once()
    [attempt] = await shop.attempts(lost)
    assert attempt.next_ask_at == shop.clock.now() + RETRY_LAST_EVERY, "once at least, after an outage"
    shop.clock.move(RETRY_LAST_EVERY)
    await shop.reconciler.run_once()
    [attempt] = await shop.attempts(lost)
    assert attempt.next_ask_at is None, "not for ever"


@pytest.mark.rule("description.5")
async def test_a_late_success_is_found_without_its_event_to_the_end_of_the_schedule(shop: MemoryShop) -> None:
    declined, expired = await shop.handed_over(), await shop.initiated()
    shop.a.start_fault = FaultKind.TIMEOUT  # its charge was begun and our answer lost; nobody was sent there
    await refused_with(shop.process(expired))
    shop.clock.move(CHECKOUT_TTL)
    shop.says(Outcome.FAILED)
    await sweep_expired(shop.services.settlement)
    await shop.reconciler.run_once()
    shop.says(Outcome.SUCCEEDED)
    shop.clock.set(START + CHECK_AFTER[-1])
    await shop.reconciler.run_once()
    assert await shop.anomalies() == [AnomalyKind.LATE_SUCCESS] * 2
    for reference in (declined, expired):
        assert (await shop.payment(reference)).status is Status.FAILED
        [attempt] = await shop.attempts(reference)
        assert attempt.confirmed_at == shop.clock.now()
        assert attempt.next_ask_at == shop.clock.now() + CHECK_PAID_AFTER[0]


@pytest.mark.parametrize("first", [Outcome.SUCCEEDED, Outcome.REVERSED])
async def test_another_charge_of_a_paid_payment_is_found_without_its_event(shop: MemoryShop, first: Outcome) -> None:
    reference = await shop.initiated()
    shop.a.start_faults = [FaultKind.TIMEOUT]  # the charge was begun all the same
    await refused_with(shop.process(reference))
    shop.says(Outcome.PENDING)
    await shop.process(reference, "provider_b")
    told = Said(first).report(reference, 150000)
    await shop.services.settlement.report(told, "provider_a", SANDBOX, "event")
    assert (await shop.payment(reference)).status is PAYMENT.moves[PAYMENT.initial, TRIGGER_FOR[first]]
    shop.b.says = Said(Outcome.FAILED)
    shop.clock.set(START + CHECK_AFTER[4])
    await shop.reconciler.run_once()
    assert await shop.anomalies() == [], "its decline is nothing beside the charge that was paid"
    shop.b.says = Said(Outcome.SUCCEEDED)
    shop.clock.set(START + CHECK_AFTER[-1])
    await shop.reconciler.run_once()
    assert await shop.anomalies() == [AnomalyKind.SECOND_CHARGE]
    _, other = await shop.attempts(reference)
    assert other.next_ask_at == shop.clock.now() + CHECK_PAID_AFTER[0], "it may be refunded"


async def test_a_claim_whose_owner_died_is_asked_about_when_its_lease_ends(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    shop.a.start_fault = FaultKind.TIMEOUT
    with pytest.raises(Exception, match="GATEWAY_NOT_AVAILABLE"):
        await shop.process(reference)
    claim = (await shop.attempts(reference))[0].take_over("dead", shop.clock.now())
    shop.store.state.attempts[reference, 1] = claim
    shop.clock.move(CHECK_AFTER[0])
    live = claim.take_over("alive", shop.clock.now())
    shop.store.state.attempts[reference, 1] = live
    assert await shop.reconciler.run_once() == 1
    assert shop.a.fetched == []
    [held] = await shop.attempts(reference)
    assert (held.state, held.next_ask_at) == (AttemptState.CLAIMED, live.lease_until)
    shop.clock.move(LEASE + HOLD)
    shop.says(Outcome.SUCCEEDED)
    assert await shop.reconciler.run_once() == 1
    assert [charge.reference for charge in shop.a.fetched] == [reference]


async def test_two_workers_ask_once_and_a_hold_ends(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.clock.move(CHECK_AFTER[0])
    await shop.pause(shop.clock.now() + HOLD)
    assert await shop.reconciler.run_once() == 1
    assert await shop.reconciler.run_once() == 0, "held"
    assert shop.a.fetched == []
    [attempt] = await shop.attempts(reference)
    assert (attempt.asks, attempt.next_ask_at) == (0, START + CHECK_AFTER[0])
    assert await shop.reconciler.oldest_unasked() == START + CHECK_AFTER[0]
    shop.clock.move(HOLD)
    assert await shop.reconciler.run_once() == 1
    assert len(shop.a.fetched) == 1


async def test_a_last_check_whose_call_fails_is_made_again_each_hour_for_a_day(shop: MemoryShop) -> None:
    """Or one failed call at the wrong minute leaves a paid payment PENDING for good."""
    lost = await shop.handed_over()
    shop.a.fetch_fault = FaultKind.UNREACHABLE
    asked = await to_the_end(shop, lost)
    last = CHECK_AFTER[-1]
    assert asked == [*CHECK_AFTER, *(last + timedelta(hours=hour) for hour in range(1, 25))]
    assert (await shop.payment(lost)).status is Status.PENDING
    assert await shop.anomalies() == [AnomalyKind.NO_EVIDENCE]


@pytest.mark.parametrize("outage", [timedelta(0), timedelta(days=5)])
@pytest.mark.parametrize("has_credentials", [True, False])
async def test_a_payment_whose_last_check_failed_settles_by_the_next(
    shop: MemoryShop, has_credentials: bool, outage: timedelta
) -> None:
    """Credentials may be replaced at that minute by wrong ones, or lie under a key that is missing; and our worker may
    have been away for days."""
    paid = await shop.handed_over()
    shop.a.fetch_fault = FaultKind.UNREACHABLE
    await shop.change("provider_a", credentials=shop.sealed("provider_a") if has_credentials else None)
    shop.clock.set(START + CHECK_AFTER[-1] + outage)
    await shop.reconciler.run_once()
    await shop.change("provider_a")
    shop.a.fetch_fault = None
    shop.says(Outcome.SUCCEEDED)
    shop.clock.move(timedelta(hours=1))
    await shop.reconciler.run_once()
    assert (await shop.payment(paid)).status is Status.SUCCESS
    assert await shop.anomalies() == []


async def test_each_provider_and_environment_has_a_rate_of_its_own(shop: MemoryShop) -> None:
    assert set(shop.reconciler.shares()) == set(product((*SLUGS, "sandbox"), Environment))
    for slug, environment in (("provider_a", SANDBOX), ("provider_b", SANDBOX), ("provider_a", LIVE)):
        for _ in range(RATE + 1):
            await shop.handed_over(slug, environment=environment)
    shop.clock.move(CHECK_AFTER[0])
    assert await shop.reconciler.run_at("provider_a", SANDBOX) == RATE
    assert (len(shop.a.fetched), len(shop.b.fetched)) == (RATE, 0)
    assert {charge.environment for charge in shop.a.fetched} == {SANDBOX}
    assert await shop.reconciler.run_once() == 1 + 2 * RATE
    assert await shop.reconciler.run_once() == 2
    assert await shop.reconciler.run_once() == 0


async def test_what_was_in_the_air_at_the_start_is_asked_about_at_once(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.clock.move(timedelta(seconds=10))
    later = await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    assert await shop.reconciler.run_at("provider_a", SANDBOX) == 0
    assert await shop.reconciler.run_at("provider_a", SANDBOX, START + timedelta(seconds=5)) == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS
    assert (await shop.payment(later)).status is Status.PENDING


async def test_one_ask_that_breaks_leaves_the_others_done(shop: MemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = await shop.handed_over(), await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    report = type(shop.services.settlement).report

    async def fails(self: object, told: object, *arguments: object, **named: object) -> object:
        if getattr(told, "provider_reference", None) == broken:
            raise RuntimeError("the database went away")
        return await report(self, told, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(shop.services.settlement), "report", fails)
    shop.clock.move(CHECK_AFTER[0])
    with pytest.raises(RuntimeError):
        await shop.reconciler.run_once()
    assert (await shop.payment(broken)).status is Status.PENDING
    assert (await shop.payment(sound)).status is Status.SUCCESS
    assert (await shop.attempts(broken))[0].next_ask_at == START + CHECK_AFTER[0]


async def test_an_ask_that_ends_late_uses_up_no_instant_that_passed_meanwhile(
    shop: MemoryShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was frozen with a question under way knows nothing of a payer who paid after the question."""
    reference = await shop.handed_over()
    shop.says(Outcome.UNPAID)
    fetch = shop.a.fetch_charge

    async def frozen(charge: Charge) -> ProviderReport:
        report = await fetch(charge)
        shop.clock.set(START + CHECK_AFTER[3])
        return report

    monkeypatch.setattr(shop.a, "fetch_charge", frozen)
    shop.clock.move(CHECK_AFTER[0])
    assert await shop.reconciler.run_once() == 1
    monkeypatch.undo()
    assert (await shop.attempts(reference))[0].next_ask_at == START + CHECK_AFTER[1]
    shop.says(Outcome.SUCCEEDED)
    assert await shop.reconciler.run_once() == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS
