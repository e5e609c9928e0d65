"""A business that is not active takes no more money, and what is under way settles."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from payagg_testing.builders import a_business

from payagg.application.schemas.payments import ProcessPayment
from payagg.domain.business import BusinessStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import UnavailableReason
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.provider_world import World, world_on

pytestmark = pytest.mark.anyio
STANDINGS = pytest.mark.parametrize("standing", [BusinessStatus.SUSPENDED, BusinessStatus.RESTRICTED])
SUCCESS_CARD = "4242424242424242"


@pytest.fixture
async def world(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(database_url, tmp_path) as world:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER
        yield world


async def stand(world: World, standing: BusinessStatus) -> None:
    async with world.store.begin() as tx:
        await tx.businesses.save(a_business(status=standing))


async def refusal(world: World, payment: Payment, command: ProcessPayment) -> tuple[ErrorCode, str | None]:
    with pytest.raises(Refusal) as refused:
        await world.services.checkout.process(payment.reference, command)
    return refused.value.code, refused.value.field


@pytest.mark.rule("payments.27")
@STANDINGS
@pytest.mark.parametrize("environment", Environment)
async def test_process_is_refused_on_every_open_link(
    world: World, standing: BusinessStatus, environment: Environment
) -> None:
    fresh = await world.payment(environment=environment)
    pending = await world.handed_over(environment=environment)
    await stand(world, standing)
    commands = [ProcessPayment(gateway_slug=slug) for slug in ("provider_a", "provider_b")]
    if environment is Environment.SANDBOX:
        commands.append(ProcessPayment(gateway_slug="sandbox", card_number=SUCCESS_CARD))
    for payment in (fresh, pending):
        for command in commands:
            assert await refusal(world, payment, command) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    assert await world.attempts(fresh) == []
    assert world.fakes.paystack.book.count("initialize") == 1
    await stand(world, BusinessStatus.ACTIVE)
    assert (await world.process(fresh)).gateway == "provider_a"


@pytest.mark.rule("payments.27")
@STANDINGS
async def test_the_options_stay_listed_and_none_can_be_chosen(world: World, standing: BusinessStatus) -> None:
    payment = await world.payment()
    await stand(world, standing)
    options = (await world.services.checkout.options(payment.reference)).gateways
    assert [option.slug for option in options] == ["provider_a", "provider_b", "sandbox"]
    assert {(option.available, option.unavailable_reason) for option in options} == {
        (False, UnavailableReason.DISABLED)
    }


@pytest.mark.rule("payments.28")
@STANDINGS
async def test_what_is_pending_settles(world: World, standing: BusinessStatus) -> None:
    verified, asked = await world.handed_over(), await world.handed_over()
    for payment in (verified, asked):
        world.fakes.paystack.pay(payment.reference)
    await stand(world, standing)
    assert (await world.services.verification.verify(verified.reference)).status is Status.SUCCESS
    due = (await world.attempts(asked))[-1].next_ask_at
    assert due is not None
    world.clock.set(due)
    await world.services.reconciler.run_once()
    assert (await world.read(asked)).status is Status.SUCCESS


async def test_a_final_and_an_expired_payment_answer_as_ever(world: World) -> None:
    paid, expired = await world.handed_over(), await world.payment()
    world.fakes.paystack.pay(paid.reference)
    await world.services.verification.verify(paid.reference)
    await stand(world, BusinessStatus.SUSPENDED)
    command = ProcessPayment(gateway_slug="provider_a")
    assert (await refusal(world, paid, command))[0] is ErrorCode.PAYMENT_ALREADY_PROCESSED
    world.clock.set(expired.expires_at)
    assert (await refusal(world, expired, command))[0] is ErrorCode.PAYMENT_EXPIRED
