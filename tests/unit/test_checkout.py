"""The one charge, on the memory store with providers that do as they are told."""

import asyncio
import gc
from datetime import datetime, timedelta

import pytest

from payagg.application.checkout import WAIT
from payagg.application.provider_calls import CALL_SECONDS
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.attempt import ATTEMPTS_MAX, LEASE, AttemptState, HandOffKind
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import GatewayStatus
from payagg.domain.health import Health
from payagg.domain.payment import Status
from payagg.domain.report import FaultKind, Outcome
from payagg.domain.values import Environment
from payagg.testing.clocks import START, Chance, ManualClock
from payagg.testing.simulation.loop import VirtualLoop
from tests.support.builders import a_business, a_gateway
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.receivers import until
from tests.support.refusals import refused_with

pytestmark = pytest.mark.anyio
SANDBOX, LIVE = Environment.SANDBOX, Environment.LIVE
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
GOOD_CARD, UNKNOWN = "4242 4242 4242 4242", "PAY-20250131-000000"
CLAIMED, HANDED_OFF = AttemptState.CLAIMED, AttemptState.HANDED_OFF
REFUSED, UNANSWERED = AttemptState.REFUSED, AttemptState.UNKNOWN


class HurryingClock(ManualClock):
    """Moves on by `step` whenever it is read."""

    step = timedelta(0)

    def now(self) -> datetime:
        self.move(self.step)
        return super().now()


async def states(shop: MemoryShop, reference: str) -> list[tuple[str, AttemptState]]:
    return [(attempt.gateway, attempt.state) for attempt in await shop.attempts(reference)]


async def test_process_hands_the_payer_over_once_and_repeats_the_hand_off() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    first = await shop.process(reference, "provider_a")
    assert (first.status, first.gateway, first.handoff) == (Status.PENDING, "provider_a", HandOffKind.REDIRECT)
    assert first.checkout_url == f"https://provider_a.example/{reference}"
    assert await shop.process(reference, "provider_b") == first
    assert await shop.process(reference, None) == first
    assert (len(shop.a.started), len(shop.b.started)) == (1, 0)
    [attempt] = await shop.attempts(reference)
    assert (attempt.state, attempt.number, attempt.gateway_id) == (HANDED_OFF, 1, "gw_provider_a")
    payment = await shop.payment(reference)
    assert (payment.status, payment.gateway, payment.sequence) == (Status.PENDING, "provider_a", 1)
    assert await shop.events(reference) == ["payment.pending"]
    async with shop.store.begin() as tx:
        [transition] = await tx.payments.transitions(reference)
        [call] = await tx.payments.calls(reference)
    assert transition.actor == "payer"
    assert (call.operation, call.result, call.word, call.attempt, call.actor) == (
        "start_charge", "REDIRECT", None, 1, "payer",
    )  # fmt: skip


async def test_the_provider_is_told_of_the_payment_and_its_payer() -> None:
    shop = await MemoryShop().open()
    payer = {"customer_email": "ada@example.com", "customer_name": "Ada", "customer_phone": "+2348012345678"}
    reference = await shop.handed_over(**payer)
    [charge] = shop.a.started
    assert (charge.reference, charge.amount, charge.currency, charge.environment) == (reference, 150000, "NGN", SANDBOX)
    assert {name: getattr(charge, name) for name in payer} == payer
    assert charge.business_name == "Ada's Shop"
    assert charge.checkout_url == f"{shop.services.settings.base_url}/checkout/{reference}"
    assert dict(charge.credentials) == {"account": "account of provider_a"}


async def test_the_preferred_gateway_serves_where_none_is_chosen() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated(gateway="provider_b")
    assert (await shop.process(reference, None)).gateway == "provider_b"
    free = await shop.initiated()
    assert await refused_with(shop.process(free, None)) == (ErrorCode.VALIDATION_ERROR, "gatewaySlug")


async def test_a_choice_is_looked_at_before_anything_is_stored() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    assert await refused_with(shop.process(reference, "nobody")) == (ErrorCode.VALIDATION_ERROR, "gatewaySlug")
    assert await refused_with(shop.process(reference, "sandbox", "4242")) == (ErrorCode.VALIDATION_ERROR, "cardNumber")
    assert await refused_with(shop.process(UNKNOWN, "sandbox", "4242")) == (ErrorCode.VALIDATION_ERROR, "cardNumber")
    assert await refused_with(shop.process(reference, "sandbox")) == (ErrorCode.VALIDATION_ERROR, "cardNumber")
    assert await shop.attempts(reference) == []
    # A card is nobody else's: what comes beside another gateway is not looked at.
    assert (await shop.process(reference, "provider_a", "4242")).gateway == "provider_a"


async def test_a_test_card_settles_by_its_scenario() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    processed = await shop.process(reference, "sandbox", GOOD_CARD)
    assert (processed.handoff, processed.checkout_url) == (
        HandOffKind.SIMULATOR, f"{shop.services.settings.base_url}/checkout/{reference}",
    )  # fmt: skip
    [attempt] = await shop.attempts(reference)
    assert (attempt.scenario, attempt.gateway_id) == ("success", None)
    assert (await shop.verification.verify(reference)).status is Status.SUCCESS
    async with shop.store.begin() as tx:
        assert await tx.payments.calls(reference) == []


async def test_a_final_and_an_expired_payment_are_refused() -> None:
    shop = await MemoryShop().open()
    paid, late = await shop.handed_over(), await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    await shop.verification.verify(paid)
    assert await refused_with(shop.process(paid)) == (ErrorCode.PAYMENT_ALREADY_PROCESSED, None)
    shop.clock.move(HOUR)
    assert await refused_with(shop.process(late)) == (ErrorCode.PAYMENT_EXPIRED, None)


@pytest.mark.parametrize(
    ("fault", "code", "state"),
    [
        (FaultKind.REJECTED, ErrorCode.GATEWAY_NOT_AVAILABLE, REFUSED),
        (FaultKind.RATE_LIMITED, ErrorCode.GATEWAY_NOT_AVAILABLE, REFUSED),
        (FaultKind.BAD_CREDENTIALS, ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, REFUSED),
        (FaultKind.TIMEOUT, ErrorCode.GATEWAY_NOT_AVAILABLE, UNANSWERED),
        (FaultKind.UNREACHABLE, ErrorCode.GATEWAY_NOT_AVAILABLE, UNANSWERED),
        (FaultKind.SERVER_ERROR, ErrorCode.GATEWAY_NOT_AVAILABLE, UNANSWERED),
        (FaultKind.MALFORMED, ErrorCode.GATEWAY_NOT_AVAILABLE, UNANSWERED),
    ],
)
async def test_a_failed_hand_off_leaves_the_payment_free(
    fault: FaultKind, code: ErrorCode, state: AttemptState
) -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.start_fault = fault
    assert await refused_with(shop.process(reference)) == (code, "gatewaySlug")
    assert await states(shop, reference) == [("provider_a", state)]
    [attempt] = await shop.attempts(reference)
    assert (attempt.next_ask_at is None) is (state is REFUSED)
    assert (await shop.payment(reference)).status is Status.INITIATED
    async with shop.store.begin() as tx:
        [call] = await tx.payments.calls(reference)
        health = {one.gateway: one.faults for one in await tx.health.all()}
    assert call.result == fault.value
    assert health.get("provider_a", 0) == (1 if fault.is_unhealthy else 0)


async def test_a_reference_that_is_taken_there_is_begun_anew_under_the_next() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.start_faults = [FaultKind.DUPLICATE]
    shop.says(Outcome.UNPAID)
    assert (await shop.process(reference)).checkout_url == f"https://provider_a.example/{reference}.2"
    assert [charge.reference for charge in shop.a.fetched] == [reference]
    assert await states(shop, reference) == [("provider_a", REFUSED), ("provider_a", HANDED_OFF)]


async def unanswered(shop: MemoryShop) -> str:
    """A payment whose first call got no answer."""
    reference = await shop.initiated()
    shop.a.start_fault = FaultKind.TIMEOUT
    await refused_with(shop.process(reference))
    shop.a.start_fault = None
    return reference


async def test_what_was_not_answered_is_asked_about_before_a_second_try() -> None:
    shop = await MemoryShop().open()
    reference = await unanswered(shop)
    shop.says(Outcome.UNPAID)
    assert (await shop.process(reference)).checkout_url == f"https://provider_a.example/{reference}.2"
    assert [charge.reference for charge in shop.a.fetched] == [reference]
    assert await states(shop, reference) == [("provider_a", REFUSED), ("provider_a", HANDED_OFF)]


async def test_what_was_paid_behind_a_lost_answer_settles_the_payment() -> None:
    shop = await MemoryShop().open()
    reference = await unanswered(shop)
    shop.says(Outcome.SUCCEEDED)
    assert await refused_with(shop.process(reference)) == (ErrorCode.PAYMENT_ALREADY_PROCESSED, None)
    assert (await shop.payment(reference)).status is Status.SUCCESS
    assert len(shop.a.started) == 1


@pytest.mark.parametrize("slug", ["provider_a", None])
async def test_the_same_gateway_must_answer_first(slug: str | None) -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated(gateway="provider_a")
    shop.a.start_fault = shop.a.fetch_fault = FaultKind.TIMEOUT
    for _ in range(2):
        assert await refused_with(shop.process(reference, slug)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    assert await states(shop, reference) == [("provider_a", UNANSWERED)]
    assert (len(shop.a.started), len(shop.a.fetched)) == (1, 1)


async def test_another_gateway_may_be_chosen_when_the_first_says_nothing() -> None:
    shop = await MemoryShop().open()
    reference = await unanswered(shop)
    shop.a.fetch_fault = FaultKind.TIMEOUT
    assert (await shop.process(reference, "provider_b")).gateway == "provider_b"
    assert await states(shop, reference) == [("provider_a", REFUSED), ("provider_b", HANDED_OFF)]
    assert shop.b.started[0].reference == f"{reference}.2"


async def test_an_attempt_that_nobody_can_be_asked_about_is_passed_over() -> None:
    shop = await MemoryShop().open()
    reference = await unanswered(shop)
    await shop.change("provider_a", credentials=None)
    assert await refused_with(shop.process(reference)) == (
        ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, "gatewaySlug",
    )  # fmt: skip
    assert await states(shop, reference) == [("provider_a", UNANSWERED)]
    assert (await shop.process(reference, "provider_b")).gateway == "provider_b"
    assert await states(shop, reference) == [("provider_a", REFUSED), ("provider_b", HANDED_OFF)]
    assert shop.a.fetched == []


async def test_a_paused_provider_is_not_asked_about_an_unanswered_attempt_either() -> None:
    shop = await MemoryShop().open()
    reference = await unanswered(shop)
    async with shop.store.begin() as tx:
        await tx.health.save(Health("provider_a", SANDBOX, 5, START + SECOND, SECOND))
    assert await refused_with(shop.process(reference)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    assert (await states(shop, reference), shop.a.fetched) == ([("provider_a", UNANSWERED)], [])
    assert (await shop.process(reference, "provider_b")).gateway == "provider_b"


@pytest.mark.parametrize("status", [GatewayStatus.DISABLED, GatewayStatus.DRAINING])
async def test_a_gateway_that_is_off_takes_no_charge(status: GatewayStatus) -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    await shop.change("provider_a", status=status, **(
        {"drain_started_at": START, "drain_ends_at": START + HOUR} if status is GatewayStatus.DRAINING else {}
    ))  # fmt: skip
    assert await refused_with(shop.process(reference)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    assert await shop.attempts(reference) == []


async def test_a_provider_that_failed_five_times_is_left_alone_until_its_pause_ends() -> None:
    shop = await MemoryShop().open()
    shop.a.start_fault = FaultKind.TIMEOUT
    for _ in range(Health.FAULTS_MAX + 2):
        await refused_with(shop.process(await shop.initiated()))
    assert len(shop.a.started) == Health.FAULTS_MAX
    shop.a.start_fault = None
    shop.clock.move(Health.FIRST_PAUSE)
    assert (await shop.process(await shop.initiated())).status is Status.PENDING
    async with shop.store.begin() as tx:
        assert {one.faults for one in await tx.health.all()} == {0}


async def test_after_a_pause_one_call_probes_and_the_others_wait_for_it() -> None:
    shop = await MemoryShop().open()
    async with shop.store.begin() as tx:
        await tx.health.save(Health("provider_a", SANDBOX, 5, START, Health.FIRST_PAUSE))
    shop.a.may_answer = asyncio.Event()
    probe = asyncio.create_task(shop.process(await shop.initiated()))
    await shop.a.called.wait()
    assert await refused_with(shop.process(await shop.initiated())) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    shop.a.may_answer.set()
    assert (await probe).status is Status.PENDING
    assert (await shop.process(await shop.initiated())).status is Status.PENDING


async def test_a_call_that_says_nothing_of_a_providers_health_is_no_probe() -> None:
    shop = await MemoryShop().open()
    paused = Health("provider_a", SANDBOX, 5, START + SECOND, Health.FIRST_PAUSE)
    async with shop.store.begin() as tx:
        await tx.health.save(paused)
    shop.a.starts_alone = True
    assert await refused_with(shop.process(await shop.initiated())) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    shop.clock.move(SECOND)
    for _ in range(2):
        assert (await shop.process(await shop.initiated())).status is Status.PENDING
    async with shop.store.begin() as tx:
        assert await tx.health.all() == [paused]


def test_how_long_a_call_took_is_noted() -> None:
    async def noted() -> list[int]:
        shop = await MemoryShop().open()
        await asyncio.sleep(60)  # so that the loop's clock is not at zero
        shop.a.seconds = 2.5
        reference = await shop.handed_over()
        async with shop.store.begin() as tx:
            return [call.duration_ms for call in await tx.payments.calls(reference)]

    loop = VirtualLoop(Chance(1))
    try:
        assert loop.run_until_complete(noted()) == [2500]
    finally:
        loop.close()


def test_a_call_that_takes_too_long_is_given_up_and_asked_about() -> None:
    async def given_up() -> tuple[ErrorCode, list[tuple[str, AttemptState]]]:
        shop = await MemoryShop().open()
        shop.a.seconds = CALL_SECONDS + 1
        reference = await shop.initiated()
        code, _ = await refused_with(shop.process(reference))
        return code, await states(shop, reference)

    loop = VirtualLoop(Chance(1))
    try:
        assert loop.run_until_complete(given_up()) == (ErrorCode.GATEWAY_NOT_AVAILABLE, [("provider_a", UNANSWERED)])
    finally:
        loop.close()


async def test_while_a_claimant_is_alive_everybody_waits_for_its_hand_off() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.may_answer = asyncio.Event()
    calls = [asyncio.create_task(shop.process(reference, slug)) for slug in ("provider_a", "provider_b", "provider_a")]
    await shop.a.called.wait()
    await asyncio.sleep(0.1)
    assert await states(shop, reference) == [("provider_a", CLAIMED)]
    shop.a.may_answer.set()
    assert len({(await call).checkout_url for call in calls}) == 1
    assert (len(shop.a.started), len(shop.b.started), shop.checkout.running) == (1, 0, set())


async def test_who_waits_too_long_is_told() -> None:
    clock = HurryingClock()
    shop = await MemoryShop(clock=clock).open()
    reference = await shop.initiated()
    shop.a.may_answer = asyncio.Event()
    first = asyncio.create_task(shop.process(reference))
    await shop.a.called.wait()
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


async def test_a_claim_whose_owner_died_is_taken_over_when_its_lease_ends() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.may_answer = held_back = asyncio.Event()
    dead = asyncio.create_task(shop.process(reference))
    await shop.a.called.wait()
    shop.clock.move(LEASE)
    shop.a.may_answer = None
    shop.says(Outcome.UNPAID)
    taken = await shop.process(reference)
    assert taken.checkout_url == f"https://provider_a.example/{reference}.2"
    # The first owner was not dead: what it got is recorded nowhere, and it returns what its follower got.
    held_back.set()
    assert await dead == taken
    assert await states(shop, reference) == [("provider_a", REFUSED), ("provider_a", HANDED_OFF)]


async def test_a_claim_that_was_taken_over_is_not_freed_by_the_fault_of_its_first_owner() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.may_answer = held_back = asyncio.Event()
    late = asyncio.create_task(shop.process(reference))
    await shop.a.called.wait()
    shop.clock.move(LEASE)
    shop.a.may_answer, shop.a.fetch_fault = None, FaultKind.TIMEOUT
    taken = await shop.process(reference, "provider_b")
    shop.a.start_fault = FaultKind.TIMEOUT
    before = await shop.attempts(reference)
    held_back.set()
    assert (await refused_with(late))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert await shop.attempts(reference) == before
    assert await shop.process(reference) == taken


async def test_nobody_pays_a_business_that_is_not_there() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.store.state.businesses.clear()
    assert (await refused_with(shop.process(reference)))[0] is ErrorCode.PAYMENT_NOT_FOUND
    assert await shop.attempts(reference) == []


async def test_a_gateway_that_no_provider_of_ours_serves_is_not_available() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    async with shop.store.begin() as tx:
        await tx.gateways.add(a_gateway("provider_c", id="gw_c"))
    assert await refused_with(shop.process(reference, "provider_c")) == (
        ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug",
    )  # fmt: skip


async def test_calls_from_before_a_pause_do_not_stretch_it() -> None:
    shop = await MemoryShop().open()
    shop.a.start_fault, shop.a.may_answer = FaultKind.TIMEOUT, asyncio.Event()
    references = [await shop.initiated() for _ in range(Health.FAULTS_MAX + 2)]
    calls = [asyncio.create_task(refused_with(shop.process(reference))) for reference in references]
    await until(lambda: len(shop.a.started) == len(references))
    shop.a.may_answer.set()
    await asyncio.gather(*calls)
    async with shop.store.begin() as tx:
        [health] = await tx.health.all()
    assert (health.faults, health.open_for) == (Health.FAULTS_MAX, Health.FIRST_PAUSE)


async def test_the_work_goes_on_when_the_caller_goes_away() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.may_answer = asyncio.Event()
    caller = asyncio.create_task(shop.process(reference))
    await shop.a.called.wait()
    caller.cancel()
    [work] = shop.checkout.running
    shop.a.may_answer.set()
    assert (await work).status is Status.PENDING
    assert (await shop.payment(reference)).status is Status.PENDING


async def test_what_becomes_of_the_work_of_a_caller_who_went_away_is_no_error_of_the_loop() -> None:
    shop = await MemoryShop().open()
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    for ends in ("refused", "cancelled"):
        shop.a.called.clear()
        shop.a.may_answer, shop.a.start_fault = asyncio.Event(), FaultKind.TIMEOUT
        caller = asyncio.create_task(shop.process(await shop.initiated()))
        await shop.a.called.wait()
        caller.cancel()
        [work] = shop.checkout.running
        if ends == "refused":
            shop.a.may_answer.set()
        else:
            work.cancel()
        await asyncio.wait({work, caller})
        await asyncio.sleep(0)
        del work, caller
        gc.collect()
    assert told == []


async def test_a_payment_has_so_many_attempts() -> None:
    shop = await MemoryShop().open()
    reference = await shop.initiated()
    shop.a.start_fault = FaultKind.REJECTED
    for _ in range(ATTEMPTS_MAX + 2):
        assert (await refused_with(shop.process(reference)))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert len(shop.a.started) == ATTEMPTS_MAX
    assert [attempt.number for attempt in await shop.attempts(reference)] == list(range(1, ATTEMPTS_MAX + 1))


async def test_a_payment_initiated_for_one_gateway_may_be_paid_through_another() -> None:
    shop = await MemoryShop().open()
    command = InitiatePayment(amount=150000, gateway="provider_a")
    made = await shop.payments.initiate(command, a_business(SHOP), SANDBOX)
    await shop.process(made.payment.reference, "provider_b")
    assert (await shop.payment(made.payment.reference)).gateway == "provider_b"
