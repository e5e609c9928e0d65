"""Providers that refuse, break or stay silent: the payment stays free, and a sick provider is left alone."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from payagg.adapters.providers.references import ours
from payagg.application.schemas.payments import ProcessPayment
from payagg.domain.attempt import ATTEMPTS_MAX, AttemptState
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import UnavailableReason
from payagg.domain.health import Health
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import Fault
from tests.support.provider_rigs import PUBLIC_KEYS, SECRET_KEYS, SIGNING
from tests.support.provider_world import World, world_on

pytestmark = pytest.mark.anyio


@pytest.fixture
async def impatient(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives up on silence soon, so that a test need not wait long; a machine that stalls for a moment still answers."""
    async with world_on(database_url, tmp_path, deadline=3.0) as world:
        yield world


async def refusal(world: World, payment: Payment, slug: str = "provider_a") -> ErrorCode:
    with pytest.raises(Refusal) as refused:
        await world.process(payment, slug)
    return refused.value.code


async def test_trap_18_a_charge_the_provider_finds_too_small_leaves_the_payment_free(world: World) -> None:
    world.fakes.paystack.min_amount = 5_000
    payment = await world.payment(amount=100)
    assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert (await world.read(payment)).status is Status.INITIATED
    assert (await world.process(payment, "provider_b")).gateway == "provider_b"


async def test_a_refused_key_is_a_matter_of_configuration(world: World) -> None:
    payment = await world.payment()
    world.fakes.paystack.book.faults.append(Fault.REFUSED_KEY)
    assert await refusal(world, payment) is ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED
    assert [a.state for a in await world.attempts(payment)] == [AttemptState.REFUSED]
    assert (await world.process(payment)).gateway == "provider_a"


async def test_missing_credentials_are_a_matter_of_configuration(world: World) -> None:
    await world.set_credentials("provider_a", {"liveSecretKey": "sk_live_canary"})
    assert await refusal(world, await world.payment()) is ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.RESET])
async def test_trap_7_a_lost_answer_is_unknown_and_the_provider_is_asked_before_a_second_try(
    impatient: World, fault: Fault
) -> None:
    world = impatient
    payment = await world.payment()
    world.fakes.paystack.book.faults.append(fault)
    assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert [a.state for a in await world.attempts(payment)] == [AttemptState.UNKNOWN]
    assert (await world.read(payment)).status is Status.INITIATED
    await world.process(payment)
    assert [name for name, _ in world.fakes.paystack.book.calls] == ["initialize", "verify", "initialize"]
    assert [a.state for a in await world.attempts(payment)] == [AttemptState.REFUSED, AttemptState.HANDED_OFF]


async def test_trap_7_a_duplicate_reference_is_asked_about_and_then_begun_under_the_next(world: World) -> None:
    payment = await world.payment()
    first = await world.payment(reference="PAY-20250131-AAAAAA")
    await world.process(first)
    # The provider knows the reference although we have no record of a call, as after a restore of a backup.
    book = world.fakes.paystack.book
    book.charges[payment.reference] = book.charges.pop(first.reference)
    book.charges[payment.reference].reference = payment.reference
    await world.process(payment)
    assert [name for name, about in book.calls if about.startswith(payment.reference)] == [
        "initialize",
        "verify",
        "initialize",
    ]


async def test_while_an_answer_is_unknown_the_same_gateway_must_answer_but_another_may_be_chosen(
    impatient: World,
) -> None:
    world = impatient
    payment = await world.payment()
    world.fakes.paystack.book.faults.extend([Fault.LOST_REPLY, Fault.SERVER_ERROR, Fault.SERVER_ERROR])
    assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert (await world.process(payment, "provider_b")).gateway == "provider_b"
    given = [a for a in await world.attempts(payment) if a.hand_off is not None]
    assert [attempt.gateway for attempt in given] == ["provider_b"]


async def fall_ill(world: World) -> Payment:
    """Five faults in a row; a payment whose attempt is of unknown outcome since."""
    world.fakes.paystack.book.faults.extend([Fault.SERVER_ERROR] * Health.FAULTS_MAX)
    for _ in range(Health.FAULTS_MAX):
        payment = await world.payment()
        assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    world.fakes.paystack.book.calls.clear()
    return payment


async def test_a_paused_provider_is_not_asked_about_unknown_attempts_either(world: World) -> None:
    payment = await fall_ill(world)
    assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert world.fakes.paystack.book.calls == []
    assert (await world.process(payment, "provider_b")).gateway == "provider_b"
    assert world.fakes.paystack.book.calls == []


async def test_a_paused_provider_is_not_asked_by_verify_and_the_stored_status_answers_at_once(world: World) -> None:
    payment = await world.handed_over()
    await fall_ill(world)
    world.fakes.paystack.pay(payment.reference)
    assert (await world.services.verification.verify(payment.reference)).status is Status.PENDING
    assert world.fakes.paystack.book.calls == []
    world.clock.move(Health.FIRST_PAUSE)
    assert (await world.services.verification.verify(payment.reference)).status is Status.SUCCESS


@pytest.mark.rule("checkout.6")
async def test_after_five_faults_every_server_shows_the_provider_unhealthy_and_leaves_it_alone(world: World) -> None:
    await fall_ill(world)
    payment = await world.payment()
    for server in (world.services, world.other_process()):
        listed = {o.slug: o for o in (await server.checkout.options(payment.reference)).gateways}
        assert not listed["provider_a"].available
        assert listed["provider_a"].unavailable_reason is UnavailableReason.UNHEALTHY
        with pytest.raises(Refusal):
            await server.checkout.process(payment.reference, ProcessPayment(gateway_slug="provider_a"))
    assert world.fakes.paystack.book.calls == []
    live = await world.payment(environment=Environment.LIVE)
    assert (await world.process(live)).gateway == "provider_a"  # the other environment is another matter


async def test_after_the_pause_one_probe_goes_and_the_others_wait_for_its_answer(world: World) -> None:
    await fall_ill(world)
    world.clock.move(Health.FIRST_PAUSE)
    world.fakes.paystack.book.faults.append(Fault.SLOW)
    payments = [await world.payment() for _ in range(10)]
    answers = await asyncio.gather(*(world.process(payment) for payment in payments), return_exceptions=True)
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert world.fakes.paystack.book.count("initialize") == 1
    assert (await world.process(await world.payment())).gateway == "provider_a"  # the probe's success closed it


async def test_a_failed_probe_doubles_the_pause_and_late_faults_do_not_stretch_it(world: World) -> None:
    await fall_ill(world)
    world.clock.move(Health.FIRST_PAUSE)
    world.fakes.paystack.book.faults.append(Fault.SERVER_ERROR)
    await refusal(world, await world.payment())
    world.clock.move(Health.FIRST_PAUSE + timedelta(seconds=1))
    await refusal(world, await world.payment())
    assert world.fakes.paystack.book.calls == []  # 31 s on, the doubled pause holds
    world.clock.move(Health.FIRST_PAUSE)
    assert (await world.process(await world.payment())).gateway == "provider_a"


async def test_twenty_faults_at_once_are_one_pause(world: World) -> None:
    world.fakes.paystack.book.faults.extend([Fault.SERVER_ERROR] * 20)
    payments = [await world.payment() for _ in range(20)]
    await asyncio.gather(*(world.process(payment) for payment in payments), return_exceptions=True)
    world.fakes.paystack.book.faults.clear()
    world.clock.move(Health.FIRST_PAUSE)
    assert (await world.process(await world.payment())).gateway == "provider_a"


async def test_trap_20_no_credential_reaches_a_log_or_an_error(
    impatient: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    world = impatient
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    faults = (None, Fault.SERVER_ERROR, Fault.RESET, Fault.GARBAGE, Fault.REFUSED_KEY, Fault.LOST_REPLY)
    for slug in ("provider_a", "provider_b"):
        for fault in faults:
            payment = await world.payment(customer_email="canary@example.com", customer_name="Canary Canaryson")
            if fault is not None:
                world.fakes.paystack.book.faults.append(fault)
                world.fakes.payaza.book.faults.append(fault)
            try:
                await world.process(payment, slug)
                await world.services.verification.verify(payment.reference)
            except Refusal as refused:
                errors.append(f"{refused!r} {refused.message} {refused.__cause__!r} {refused.__context__!r}")
    told = (caplog.text + "".join(errors) + "".join(capsys.readouterr())).lower()
    for secret in (*SECRET_KEYS.values(), *PUBLIC_KEYS.values(), *SIGNING.values(), "canary@example.com", "canaryson"):
        assert secret.lower() not in told


async def test_a_payment_is_tried_twenty_times_and_then_calls_nobody(world: World) -> None:
    world.fakes.paystack.min_amount = 5_000
    payment = await world.payment(amount=100)
    for _ in range(ATTEMPTS_MAX + 2):
        assert await refusal(world, payment) is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert world.fakes.paystack.book.count("initialize") == len(await world.attempts(payment)) == ATTEMPTS_MAX
    last = (await world.attempts(payment))[-1].provider_reference
    assert ours(last) == last  # an event about it would be recognised


async def test_launching_a_popup_calls_nobody_and_says_nothing_about_health(world: World) -> None:
    payments = [await world.handed_over("provider_b") for _ in range(Health.FAULTS_MAX)]
    world.fakes.payaza.book.faults.extend([Fault.SERVER_ERROR] * 100)
    for payment in payments:
        await world.process(await world.payment(), "provider_b")
        await world.services.verification.verify(payment.reference)
    assert await refusal(world, await world.payment(), "provider_b") is ErrorCode.GATEWAY_NOT_AVAILABLE
    world.clock.move(Health.FIRST_PAUSE)
    await world.process(await world.payment(), "provider_b")  # does not take the place of the probe
    world.fakes.payaza.book.faults.clear()
    world.fakes.payaza.book.calls.clear()
    await world.services.verification.verify(payments[0].reference)
    assert world.fakes.payaza.book.calls != []


async def test_a_provider_that_turns_a_charge_down_is_there(world: World) -> None:
    for _ in range(2):
        for _ in range(Health.FAULTS_MAX - 1):
            world.fakes.paystack.book.faults.append(Fault.SERVER_ERROR)
            await refusal(world, await world.payment())
        world.fakes.paystack.min_amount = 5_000
        await refusal(world, await world.payment(amount=100))
        world.fakes.paystack.min_amount = 1
    assert (await world.process(await world.payment())).gateway == "provider_a"


async def test_a_merchant_whose_calls_are_too_many_pauses_the_provider_for_nobody(world: World) -> None:
    """The provider's key is the platform's: who provokes 429 must not close it to the others."""
    busy = [await world.payment() for _ in range(2 * Health.FAULTS_MAX)]
    world.fakes.paystack.book.faults.extend([Fault.RATE_LIMITED] * len(busy))
    for payment in busy:
        await refusal(world, payment)
    quiet = await world.payment()
    for server in (world.services, world.other_process()):
        listed = {o.slug: o for o in (await server.checkout.options(quiet.reference)).gateways}
        assert listed["provider_a"].available
    assert (await world.process(quiet)).gateway == "provider_a"
    assert (await world.process(busy[0])).gateway == "provider_a"  # nothing was charged, so it may be tried again


async def test_a_probe_that_is_told_to_slow_down_has_found_the_provider(world: World) -> None:
    await fall_ill(world)
    world.clock.move(Health.FIRST_PAUSE)
    world.fakes.paystack.book.faults.append(Fault.RATE_LIMITED)
    await refusal(world, await world.payment())
    assert (await world.process(await world.payment())).gateway == "provider_a"
