"""Verify: one call for many callers, at most one in two seconds, and nothing moves on facts that differ."""

import asyncio
from datetime import timedelta

import pytest

from payagg.application.schemas.payments import PayerReason
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import VERIFY_EVERY, HandOff
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Status
from payagg.domain.report import Outcome, ProviderReport
from payagg.entrypoints.dev.fake_providers import Fault, WebhookMode
from tests.support.provider_rigs import launch_parameters
from tests.support.provider_world import World

pytestmark = pytest.mark.anyio


@pytest.mark.rule("checkout.9")
async def test_64_verifies_at_once_share_one_provider_call_and_one_event(world: World) -> None:
    payment = await world.handed_over(callback_url="https://shop.example/thanks?cart=1")
    world.fakes.paystack.pay(payment.reference)
    answers = await asyncio.gather(*(world.services.verification.verify(payment.reference) for _ in range(64)))
    assert {answer.status for answer in answers} == {Status.SUCCESS}
    assert answers[0].redirect_url == f"https://shop.example/thanks?cart=1&reference={payment.reference}&status=SUCCESS"
    assert world.fakes.paystack.book.count("verify") == 1
    assert await world.events(payment) == (2, 2)  # pending, then success


async def test_two_servers_ask_at_most_once_in_two_seconds(world: World) -> None:
    payment = await world.handed_over()
    other = world.other_process()
    for server in (world.services, other, world.services, other):
        assert (await server.verification.verify(payment.reference)).status is Status.PENDING
    assert world.fakes.paystack.book.count("verify") == 1
    world.clock.move(VERIFY_EVERY)
    await other.verification.verify(payment.reference)
    assert world.fakes.paystack.book.count("verify") == 2


@pytest.mark.rule("checkout.11")
@pytest.mark.parametrize("alter", [{"amount": 149_999}, {"currency": "USD"}, {"mode": "live"}])
async def test_a_difference_is_a_502_that_moves_nothing_and_is_kept(world: World, alter: dict[str, object]) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.alter = alter
    world.fakes.paystack.book.webhook_urls.clear()
    world.fakes.paystack.pay(payment.reference)
    for _ in range(2):  # the second is answered without asking the provider, and alike
        with pytest.raises(Refusal) as refused:
            await world.services.verification.verify(payment.reference)
        assert refused.value.code is ErrorCode.PAYMENT_AMOUNT_MISMATCH
    assert (await world.read(payment)).status is Status.PENDING
    assert [a.kind for a in await world.anomalies(payment)] == [AnomalyKind.MISMATCH]


@pytest.mark.rule("checkout.12")
async def test_a_difference_that_was_taken_back_is_no_502(world: World) -> None:
    payment = await world.handed_over()
    verification = world.services.verification
    charge = world.fakes.paystack.book.charges[payment.reference]
    world.fakes.paystack.book.webhook_urls.clear()
    world.fakes.paystack.book.alter = {"amount": 149_999}
    world.fakes.paystack.pay(payment.reference)
    for wait in (timedelta(0), VERIFY_EVERY, timedelta(0)):  # the same answer again is kept once, and stands
        world.clock.move(wait)
        with pytest.raises(Refusal):
            await verification.verify(payment.reference)
    world.fakes.paystack.book.alter = {}
    charge.status = "ongoing"
    world.clock.move(VERIFY_EVERY)
    for _ in range(2):  # the second is answered without asking the provider
        assert (await verification.verify(payment.reference)).status is Status.PENDING
    charge.status = "success"
    world.fakes.paystack.book.alter = {"amount": 149_999}
    world.clock.move(VERIFY_EVERY)
    for _ in range(2):
        with pytest.raises(Refusal):
            await verification.verify(payment.reference)


@pytest.mark.rule("checkout.12")
async def test_an_unanswered_look_up_takes_nothing_back(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.webhook_urls.clear()
    world.fakes.paystack.book.alter = {"amount": 149_999}
    world.fakes.paystack.pay(payment.reference)
    with pytest.raises(Refusal):
        await world.services.verification.verify(payment.reference)
    world.fakes.paystack.book.faults.append(Fault.RESET)
    world.clock.move(VERIFY_EVERY)
    assert (await world.services.verification.verify(payment.reference)).status is Status.PENDING
    with pytest.raises(Refusal):
        await world.services.verification.verify(payment.reference)


@pytest.mark.rule("checkout.13")
async def test_the_way_home_is_normalised_and_shown_as_given(world: World) -> None:
    given = "https://bücher.example/ọjà?x=a|b#ọ"
    payment = await world.handed_over(callback_url=given)
    answer = await world.services.verification.verify(payment.reference)
    assert answer.callback_url == given
    assert answer.redirect_url == (
        f"https://xn--bcher-kva.example/%E1%BB%8Dj%C3%A0?x=a%7Cb&reference={payment.reference}&status=PENDING#%E1%BB%8D"
    )


async def test_an_answer_about_another_payment_moves_neither(world: World) -> None:
    asked, other = await world.handed_over(), await world.handed_over()
    world.fakes.paystack.pay(asked.reference)
    world.fakes.paystack.book.alter = {"reference": other.reference}
    with pytest.raises(Refusal) as refused:
        await world.services.verification.verify(asked.reference)
    assert refused.value.code is ErrorCode.PAYMENT_AMOUNT_MISMATCH
    assert [(await world.read(p)).status for p in (asked, other)] == [Status.PENDING, Status.PENDING]
    assert [a.details["field"] for a in await world.anomalies(asked)] == ["reference"]


@pytest.mark.rule("checkout.10")
@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.GARBAGE, Fault.RESET, Fault.HUGE, Fault.RATE_LIMITED])
async def test_an_unreachable_provider_leaves_the_stored_status(world: World, fault: Fault) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.pay(payment.reference)
    world.fakes.paystack.book.faults.append(fault)
    assert (await world.services.verification.verify(payment.reference)).status is Status.PENDING
    world.clock.move(VERIFY_EVERY)
    assert (await world.services.verification.verify(payment.reference)).status is Status.SUCCESS


async def test_without_credentials_it_is_refused(world: World) -> None:
    payment = await world.handed_over()
    await world.set_credentials("provider_a", {"liveSecretKey": "sk_live_canary"})
    with pytest.raises(Refusal) as refused:
        await world.services.verification.verify(payment.reference)
    assert refused.value.code is ErrorCode.GATEWAY_NOT_AVAILABLE


async def test_a_payment_is_verified_past_its_window_and_a_late_success_counts(world: World) -> None:
    payment = await world.handed_over()
    world.clock.move(timedelta(hours=5))
    world.fakes.paystack.pay(payment.reference)
    assert (await world.services.verification.verify(payment.reference)).status is Status.SUCCESS


@pytest.mark.rule("description.4")
async def test_a_declined_card_is_no_end_while_the_page_may_take_another(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.webhooks = WebhookMode.NEVER
    world.fakes.paystack.decline(payment.reference)
    for _ in range(2):  # the second within the two seconds
        answer = await world.services.verification.verify(payment.reference)
        assert (answer.status, answer.last_decline) == (Status.PENDING, PayerReason.DECLINED)
    assert (await world.process(payment)).checkout_url  # the same hand-off, and no second charge
    assert len(world.fakes.paystack.book.charges) == 1
    world.fakes.paystack.pay(payment.reference)  # with another card, its event lost
    world.clock.move(VERIFY_EVERY)
    answer = await world.services.verification.verify(payment.reference)
    assert (answer.status, answer.last_decline) == (Status.SUCCESS, None)
    assert await world.anomalies(payment) == []


async def test_a_declined_card_fails_the_payment_once_the_window_has_closed(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.webhooks = WebhookMode.NEVER
    world.fakes.paystack.decline(payment.reference)
    await world.services.verification.verify(payment.reference)
    world.clock.move(timedelta(hours=1))
    answer = await world.services.verification.verify(payment.reference)
    assert (answer.status, answer.last_decline) == (Status.FAILED, None)


async def test_a_decline_fails_the_payment_with_our_own_word(world: World) -> None:
    payment = await world.handed_over("provider_b")
    fake = world.fakes.payaza
    hand_off = await world.process(payment, "provider_b")

    assert fake.open(launch_parameters(HandOff(hand_off.handoff, hand_off.checkout_url))) is None
    fake.book.webhooks = WebhookMode.NEVER
    fake.decline(payment.reference, "Insufficient balance 5061-0600-0000-0064")
    answer = await world.services.verification.verify(payment.reference)
    assert (answer.status, answer.last_decline) == (Status.PENDING, PayerReason.INSUFFICIENT_FUNDS)
    world.clock.move(timedelta(hours=1))
    await world.services.verification.verify(payment.reference)
    assert (await world.read(payment)).failure_reason == "INSUFFICIENT_FUNDS"


async def test_an_unopened_popup_leaves_a_payment_pending(world: World) -> None:
    payment = await world.handed_over("provider_b")
    assert (await world.services.verification.verify(payment.reference)).status is Status.PENDING


async def test_what_an_event_claimed_is_no_finding_of_verify(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.charges[payment.reference].status = "ongoing"
    lie = ProviderReport(payment.reference, Outcome.SUCCEEDED, "success", frozenset({1}))
    await world.services.settlement.report(lie, "provider_a", payment.environment, "event:provider_a")
    assert [a.kind for a in await world.anomalies(payment)] == [AnomalyKind.MISMATCH]
    for _ in range(2):  # the second within the two seconds
        assert (await world.services.verification.verify(payment.reference)).status is Status.PENDING
