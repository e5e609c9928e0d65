"""The one charge, on the memory store with providers that do as they are told."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime, timedelta

import pytest
from payagg_testing.builders import HOUR, LIVE, SANDBOX, SECOND, a_business, a_report
from payagg_testing.clocks import START, Chance, ManualClock
from payagg_testing.memory import MemoryStore
from payagg_testing.memory.store import MemoryTransaction

from lab.simulation.world import VirtualLoop
from payagg.application.payments import checkout
from payagg.application.payments.checkout import WAIT
from payagg.application.ports.outside import Unavailable
from payagg.domain.attempt import ATTEMPTS_MAX, CHECK_AFTER, CHECK_PAID_AFTER, LEASE, AttemptState, HandOffKind
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.health import Health
from payagg.domain.payment import Status
from payagg.domain.report import FaultKind, Outcome
from payagg.domain.values import Environment
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with

GOOD_CARD = "4242 4242 4242 4242"
CLAIMED, HANDED_OFF = AttemptState.CLAIMED, AttemptState.HANDED_OFF
REFUSED, UNANSWERED = AttemptState.REFUSED, AttemptState.UNKNOWN
NOT_AVAILABLE = (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
TWO_ATTEMPTS = [("provider_a", REFUSED), ("provider_a", HANDED_OFF)]


class HurryingClock(ManualClock):
    """Moves on by `step` whenever it is read."""

    step = timedelta(0)

    def now(self) -> datetime:
        self.move(self.step)
        return super().now()


async def states(shop: MemoryShop, reference: str) -> list[tuple[str, AttemptState]]:
    return [(attempt.gateway, attempt.state) for attempt in await shop.attempts(reference)]


async def next_asks(shop: MemoryShop, reference: str) -> list[datetime | None]:
    return [attempt.next_ask_at for attempt in await shop.attempts(reference)]


async def test_process_hands_the_payer_over_once_and_repeats_the_hand_off(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    first = await shop.process(reference, "provider_a", "4242")  # a card is the simulator's alone
    assert (first.status, first.gateway, first.handoff) == (Status.PENDING, "provider_a", HandOffKind.REDIRECT)
    assert first.checkout_url == f"https://provider_a.example/{reference}"
    assert [await shop.process(reference, slug) for slug in ("provider_b", None)] == [first, first]
    assert (len(shop.a.started), len(shop.b.started)) == (1, 0)
    [attempt] = await shop.attempts(reference)
    assert (attempt.state, attempt.number, attempt.gateway_id) == (HANDED_OFF, 1, "gw_provider_a")
    payment = await shop.payment(reference)
    assert (payment.status, payment.gateway, payment.sequence) == (Status.PENDING, "provider_a", 1)
    assert await shop.events(reference) == ["payment.pending"]
    [transition] = await shop.store.transaction.payments.transitions(reference)
    [call] = await shop.store.transaction.provider_calls.of_payment(reference)
    assert (call.operation, call.result, call.word, call.attempt) == ("start_charge", "REDIRECT", None, 1)
    assert transition.actor == call.actor == "payer"


async def test_the_provider_is_told_of_the_payment_and_its_payer(shop: MemoryShop) -> None:
    payer = {"customer_email": "ada@example.com", "customer_name": "Ada", "customer_phone": "+2348012345678"}
    reference = await shop.handed_over(**payer)
    [charge] = shop.a.started
    assert (charge.reference, charge.amount, charge.currency, charge.environment) == (reference, 150000, "NGN", SANDBOX)
    assert {name: getattr(charge, name) for name in payer} == payer
    assert charge.business_name == "Ada's Shop"
    assert charge.checkout_url == f"{shop.services.settings.base_url}/checkout/{reference}"
    assert dict(charge.credentials) == {"account": "account of provider_a"}


@pytest.mark.parametrize(
    ("fault", "code", "state"),
    [
        (FaultKind.REJECTED, ErrorCode.GATEWAY_NOT_AVAILABLE, REFUSED),
        (FaultKind.BAD_CREDENTIALS, ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, REFUSED),
        (FaultKind.TIMEOUT, ErrorCode.GATEWAY_NOT_AVAILABLE, UNANSWERED),
    ],
)
async def test_a_failed_hand_off_leaves_the_payment_free(
    shop: MemoryShop, fault: FaultKind, code: ErrorCode, state: AttemptState
) -> None:
    reference = await shop.initiated()
    shop.a.start_fault = fault
    assert await refused_with(shop.process(reference)) == (code, "gatewaySlug")
    assert await states(shop, reference) == [("provider_a", state)]
    [attempt] = await shop.attempts(reference)
    assert (attempt.next_ask_at is None) is (state is REFUSED)
    assert (await shop.payment(reference)).status is Status.INITIATED
    [call] = await shop.store.transaction.provider_calls.of_payment(reference)
    health = {one.gateway: one.faults for one in await shop.store.transaction.health.all()}
    assert call.result == fault.value
    assert health.get("provider_a", 0) == (1 if fault.is_unhealthy else 0)


async def test_a_reference_that_is_taken_there_is_begun_anew_under_the_next(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    shop.a.start_faults = [FaultKind.DUPLICATE]
    shop.says(Outcome.UNPAID)
    assert (await shop.process(reference)).checkout_url == f"https://provider_a.example/{reference}.2"
    assert [charge.reference for charge in shop.a.fetched] == [reference]
    assert await states(shop, reference) == TWO_ATTEMPTS


async def unanswered(shop: MemoryShop) -> str:
    """A payment whose first call, of the gateway it prefers, got no answer."""
    reference = await shop.initiated(gateway="provider_a")
    shop.a.start_fault = FaultKind.TIMEOUT
    await refused_with(shop.process(reference))
    shop.a.start_fault = None
    return reference


async def test_what_was_paid_behind_a_lost_answer_settles_the_payment(shop: MemoryShop) -> None:
    reference = await unanswered(shop)
    shop.says(Outcome.SUCCEEDED)
    assert await refused_with(shop.process(reference)) == (ErrorCode.PAYMENT_ALREADY_PROCESSED, None)
    assert ((await shop.payment(reference)).status, len(shop.a.started)) == (Status.SUCCESS, 1)
    assert await next_asks(shop, reference) == [START + CHECK_PAID_AFTER[0]], "it may be refunded"


async def test_a_success_that_comes_before_a_lost_answer_is_kept_with_its_attempt(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    call, end = await shop.call_under_way(reference)
    shop.a.start_fault = FaultKind.TIMEOUT
    report = a_report(provider_reference=reference)
    await shop.services.settlement.report(report, "provider_a", SANDBOX, "event:provider_a")
    end.set()
    assert await refused_with(call) == NOT_AVAILABLE
    assert (await shop.payment(reference)).status is Status.SUCCESS
    assert await next_asks(shop, reference) == [START + CHECK_PAID_AFTER[0]], "it may be refunded"


@pytest.mark.parametrize("silence", ["no answer", "no credentials", "a pause"])
async def test_where_a_gateway_says_nothing_another_alone_may_be_chosen(shop: MemoryShop, silence: str) -> None:
    reference, code, asks = await unanswered(shop), ErrorCode.GATEWAY_NOT_AVAILABLE, 0
    if silence == "no answer":
        shop.a.fetch_fault, asks = FaultKind.TIMEOUT, 3
    elif silence == "no credentials":
        await shop.change("provider_a", credentials=None)
        code = ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED
    else:
        await shop.pause(START + SECOND)
    for slug in ("provider_a", None):
        assert await refused_with(shop.process(reference, slug)) == (code, "gatewaySlug")
        assert await states(shop, reference) == [("provider_a", UNANSWERED)]
    assert (await shop.process(reference, "provider_b")).gateway == "provider_b"
    assert await states(shop, reference) == [("provider_a", REFUSED), ("provider_b", HANDED_OFF)]
    assert (len(shop.a.started), len(shop.a.fetched)) == (1, asks)
    assert shop.b.started[0].reference == f"{reference}.2"


@pytest.mark.parametrize(("own", "other"), [(SANDBOX, LIVE), (LIVE, SANDBOX)])
async def test_after_five_faults_and_a_pause_one_call_probes_and_the_others_wait_for_it(
    shop: MemoryShop, own: Environment, other: Environment
) -> None:
    shop.a.start_fault = FaultKind.TIMEOUT
    for _ in range(Health.FAULTS_MAX + 2):
        await refused_with(shop.process(await shop.initiated(own)))
    assert len(shop.a.started) == Health.FAULTS_MAX
    shop.a.start_fault = None
    apart = await shop.initiated(other)
    listed = (await shop.checkout.options(apart)).gateways
    assert {option.slug: option.available for option in listed}["provider_a"]
    assert (await shop.process(apart)).status is Status.PENDING
    await shop.verification.verify(apart)
    assert len(shop.a.fetched) == 1
    shop.clock.move(Health.FIRST_PAUSE)
    probe, gate = await shop.call_under_way(await shop.initiated(own))
    assert await refused_with(shop.process(await shop.initiated(own))) == NOT_AVAILABLE
    gate.set()
    assert (await probe).status is Status.PENDING
    assert (await shop.process(await shop.initiated(own))).status is Status.PENDING
    assert [one.faults for one in await shop.store.transaction.health.all()] == [0]


async def test_a_call_that_says_nothing_of_a_providers_health_is_no_probe(shop: MemoryShop) -> None:
    await shop.pause(START + SECOND)
    shop.a.starts_alone = True
    assert await refused_with(shop.process(await shop.initiated())) == NOT_AVAILABLE
    shop.clock.move(SECOND)
    for _ in range(2):
        assert (await shop.process(await shop.initiated())).status is Status.PENDING
    assert [one.faults for one in await shop.store.transaction.health.all()] == [5]


def test_a_calls_time_is_noted_and_it_is_given_up_after_fifteen_seconds() -> None:
    async def called(seconds: float) -> tuple[list[int], list[tuple[str, AttemptState]]]:
        shop = await MemoryShop().open()
        await asyncio.sleep(60)  # so that the loop's clock is not at zero
        shop.a.seconds = seconds
        reference = await shop.initiated()
        with suppress(Refusal):
            await shop.process(reference)
        calls = await shop.store.transaction.provider_calls.of_payment(reference)
        return [call.duration_ms for call in calls], await states(shop, reference)

    for seconds, noted, state in ((2.5, 2500, HANDED_OFF), (16, 15_000, UNANSWERED)):
        with closing(VirtualLoop(Chance(1))) as loop:
            assert loop.run_until_complete(called(seconds)) == ([noted], [("provider_a", state)])


async def test_who_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "LONGEST_PAUSE_SECONDS", 0.05)
    clock = HurryingClock()
    shop = await MemoryShop(clock=clock).open()
    reference = await shop.initiated()
    first, _ = await shop.call_under_way(reference)
    clock.step = LEASE / 4  # so the claim lives while it is looked at, and the wait is soon over
    began = clock.now()
    shop.store.state.attempts[reference, 1] = claim = (await shop.attempts(reference))[0].take_over("t", began + WAIT)
    assert claim.is_held(began + WAIT)
    assert (await refused_with(shop.process(reference)))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert clock.now() - began >= WAIT
    clock.step = timedelta(0)
    first.cancel()
    for task in list(shop.checkout.running):
        task.cancel()


@pytest.mark.parametrize("late_fault", [None, FaultKind.TIMEOUT])
async def test_a_claim_whose_owner_seems_dead_is_taken_over_when_its_lease_ends(
    shop: MemoryShop, late_fault: FaultKind | None
) -> None:
    reference = await shop.initiated()
    late, held_back = await shop.call_under_way(reference)
    shop.clock.move(LEASE)
    shop.a.may_answer = None
    shop.says(Outcome.UNPAID)
    taken = await shop.process(reference)
    assert taken.checkout_url == f"https://provider_a.example/{reference}.2"
    # The first owner was not dead: what it got is recorded nowhere, and it returns what its follower got.
    shop.a.start_fault, before = late_fault, await shop.attempts(reference)
    held_back.set()
    if late_fault is None:
        assert await late == taken
    else:
        assert (await refused_with(late))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert await shop.attempts(reference) == before
    assert await states(shop, reference) == TWO_ATTEMPTS
    assert await shop.process(reference) == taken


@pytest.mark.rule("payments.27", "payments.28")
@pytest.mark.parametrize("standing", [BusinessStatus.SUSPENDED, BusinessStatus.RESTRICTED])
async def test_a_business_that_is_not_active_takes_no_charge_and_what_is_pending_settles(
    shop: MemoryShop, standing: BusinessStatus
) -> None:
    fresh, live = await shop.initiated(), await shop.initiated(environment=LIVE)
    verified, asked = await shop.handed_over(), await shop.handed_over()
    await shop.store.transaction.businesses.save(a_business(SHOP, status=standing))
    for reference in (fresh, live, verified):
        assert await refused_with(shop.process(reference, "provider_a")) == NOT_AVAILABLE
    assert await refused_with(shop.process(fresh, "sandbox", GOOD_CARD)) == NOT_AVAILABLE
    assert await shop.attempts(fresh) == await shop.attempts(live) == []
    shop.says(Outcome.SUCCEEDED)
    assert (await shop.verification.verify(verified)).status is Status.SUCCESS
    shop.clock.move(CHECK_AFTER[0] * 2)
    await shop.reconciler.run_once()
    assert (await shop.payment(asked)).status is Status.SUCCESS
    assert await refused_with(shop.process(verified)) == (ErrorCode.PAYMENT_ALREADY_PROCESSED, None)
    await shop.store.transaction.businesses.save(a_business(SHOP))
    assert (await shop.process(fresh)).status is Status.PENDING
    shop.clock.move(HOUR)
    await shop.store.transaction.businesses.save(a_business(SHOP, status=standing))
    assert await refused_with(shop.process(live)) == (ErrorCode.PAYMENT_EXPIRED, None)


@pytest.mark.rule("payments.27", "payments.28")
async def test_without_an_approved_kyc_a_business_takes_no_live_charge_and_what_is_pending_settles(
    shop: MemoryShop,
) -> None:
    sandbox, live = await shop.initiated(), await shop.initiated(environment=LIVE)
    pending = await shop.initiated(environment=LIVE)
    await shop.process(pending, "provider_a")
    await shop.store.transaction.businesses.save(a_business(SHOP, kyc_status=KycStatus.UNDER_REVIEW))
    for reference in (live, pending):
        assert await refused_with(shop.process(reference, "provider_a")) == NOT_AVAILABLE
    assert await shop.attempts(live) == []
    assert not any(option.available for option in (await shop.checkout.options(live)).gateways)
    assert (await shop.process(sandbox, "provider_a")).status is Status.PENDING
    shop.says(Outcome.SUCCEEDED)
    assert (await shop.verification.verify(pending)).status is Status.SUCCESS


async def test_the_work_of_a_caller_who_went_away_goes_on_and_ends_in_no_error_of_the_loop(shop: MemoryShop) -> None:
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    for ends in ("handed over", "refused", "cancelled"):
        shop.a.start_fault = FaultKind.TIMEOUT if ends == "refused" else None
        reference = await shop.initiated()
        caller, gate = await shop.call_under_way(reference)
        caller.cancel()
        [work] = shop.checkout.running
        (work.cancel if ends == "cancelled" else gate.set)()
        await asyncio.wait({work, caller})
        await asyncio.sleep(0)
        assert (await shop.payment(reference)).status is (Status.PENDING if ends == "handed over" else Status.INITIATED)
        del work, caller
        gc.collect()
    assert told == []


async def test_a_payment_has_so_many_attempts(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    shop.a.start_fault = FaultKind.REJECTED
    for _ in range(ATTEMPTS_MAX + 2):
        assert (await refused_with(shop.process(reference)))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert len(shop.a.started) == ATTEMPTS_MAX
    assert [attempt.number for attempt in await shop.attempts(reference)] == list(range(1, ATTEMPTS_MAX + 1))


class UntoldStore(MemoryStore):
    """Nobody is told how the next transaction ended that adds or takes over an attempt: `is_done` says it."""

    def __init__(self) -> None:
        super().__init__()
        self.untold, self.is_done = 0, True

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[MemoryTransaction]:
        before = set(self.tokens())
        async with super().begin() as tx:
            yield tx
            is_untold = self.untold > 0 and bool(set(self.tokens()) - before)
            self.untold -= is_untold
            if is_untold and not self.is_done:
                raise Unavailable("the connection was lost at COMMIT")
        if is_untold:
            raise Unavailable("the connection was lost at COMMIT")

    def tokens(self) -> list[str]:
        return [attempt.token for attempt in self.state.attempts.values()]


@pytest.mark.parametrize("is_done", [True, False])
async def test_a_claim_whose_commit_nobody_was_told_of_is_gone_on_with_at_once(is_done: bool) -> None:
    store = UntoldStore()
    shop = await MemoryShop(store=store).open()
    reference = await shop.initiated()
    store.untold, store.is_done = 1, is_done
    assert (await shop.process(reference)).checkout_url == f"https://provider_a.example/{reference}"
    assert await states(shop, reference) == [("provider_a", HANDED_OFF)]
    assert (len(shop.a.started), len(shop.a.fetched)) == (1, 0)


async def test_a_take_over_whose_commit_nobody_was_told_of_still_asks_first() -> None:
    store = UntoldStore()
    shop = await MemoryShop(store=store).open()
    reference = await unanswered(shop)
    store.untold = 1
    shop.says(Outcome.UNPAID)
    await shop.process(reference)
    assert await states(shop, reference) == TWO_ATTEMPTS
    assert len(shop.a.fetched) == 1


async def test_a_claim_whose_commit_stays_unknown_is_waited_for_until_its_lease_ends() -> None:
    store = UntoldStore()
    shop = await MemoryShop(store=store).open()
    reference = await shop.initiated()
    store.untold = 2
    with pytest.raises(Unavailable):
        await shop.process(reference)
    assert len(shop.a.started) == 0
    shop.clock.move(LEASE)
    shop.says(Outcome.UNPAID)
    await shop.process(reference)
    assert await states(shop, reference) == TWO_ATTEMPTS
