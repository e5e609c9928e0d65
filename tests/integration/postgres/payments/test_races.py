"""One hand-off and one charge, however many callers, processes and gateways race, and whoever dies on the way."""

import asyncio

import pytest

from payagg.adapters.providers import PROVIDERS
from payagg.application.schemas.payments import ProcessPayment
from payagg.domain.attempt import LEASE, AttemptState
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Payment
from payagg.entrypoints.dev.fake_providers import Fault
from tests.support.provider_world import PATIENCE, World
from tests.support.receivers import until

pytestmark = pytest.mark.anyio


async def until_claimed(world: World, payment: Payment) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await world.attempts(payment):  # noqa: ASYNC110 - the claim is in the database
            await asyncio.sleep(0.02)


async def handed_off(world: World, payment: Payment) -> list[str]:
    return [a.provider_reference for a in await world.attempts(payment) if a.state is AttemptState.HANDED_OFF]


@pytest.mark.rule("checkout.4")
async def test_64_callers_on_two_servers_share_one_charge_and_one_hand_off(world: World) -> None:
    payment = await world.payment()
    other = world.other_process()
    command = ProcessPayment(gateway_slug="provider_a")
    servers = [world.services.checkout, other.checkout]
    answers = await asyncio.gather(*(servers[n % 2].process(payment.reference, command) for n in range(64)))
    assert len({answer.checkout_url for answer in answers}) == 1
    assert world.fakes.paystack.book.count("initialize") == 1
    assert await world.history(payment) == ["PENDING"]
    assert await world.events(payment) == (1, 1)


async def test_the_work_goes_on_when_the_first_caller_goes_away(world: World) -> None:
    payment = await world.payment()
    world.fakes.paystack.book.faults.append(Fault.SLOW)
    first = asyncio.create_task(world.process(payment))

    await until_claimed(world, payment)
    first.cancel()
    answer = await world.process(payment)
    assert answer.checkout_url.startswith(world.fakes.paystack.base_url)
    assert world.fakes.paystack.book.count("initialize") == 1


async def test_a_repeat_with_another_gateway_returns_the_first_hand_off(world: World) -> None:
    payment = await world.payment()
    first = await world.process(payment, "provider_b")
    second = await world.process(payment, "provider_a")
    assert second == first
    assert world.fakes.paystack.book.calls == []


@pytest.mark.parametrize("label", ["P2", "P4", "P5"])
@pytest.mark.parametrize("slug", ["provider_a", "provider_b"])
async def test_a_claimant_killed_at_any_step_leaves_at_most_one_hand_off(world: World, label: str, slug: str) -> None:
    payment = await world.payment()
    await world.killed(payment, label, slug)
    world.clock.move(LEASE)  # the dead claimant's lease runs out
    answers = await asyncio.gather(*(world.process(payment, slug) for _ in range(8)))
    assert len({answer.checkout_url for answer in answers}) == 1
    given = await handed_off(world, payment)
    assert len(given) == 1
    if slug == "provider_a":
        book = world.fakes.paystack.book
        assert all(charge.opened == 1 for charge in book.charges.values())
        world.fakes.paystack.pay(given[0])
        assert book.paid(payment.reference) == 1
        assert world.fakes.paystack.base_url in answers[0].checkout_url


async def test_a_claimant_killed_while_the_provider_holds_its_answer_leaves_one_hand_off(world: World) -> None:
    payment = await world.payment()
    book = world.fakes.paystack.book
    book.faults.append(Fault.LOST_REPLY)
    child = await world.child("process", payment.reference, "provider_a")

    await until(lambda: book.count("initialize") == 1)
    child.kill()
    await child.wait()
    world.clock.move(LEASE)
    answer = await world.process(payment)
    # The provider knows of the first charge, which nobody was sent to; it was asked before the second was begun.
    assert [name for name, _ in book.calls] == ["initialize", "verify", "initialize"]
    assert await handed_off(world, payment) == [f"{payment.reference}.2"]
    assert str(book.charges[f"{payment.reference}.2"].id) in answer.checkout_url


async def test_a_charge_paid_behind_a_lost_answer_is_found_and_never_begun_again(world: World) -> None:
    payment = await world.payment()
    await world.killed(payment, "P4")
    world.fakes.paystack.book.webhook_urls.clear()
    world.fakes.paystack.pay(payment.reference)
    world.clock.move(LEASE)
    with pytest.raises(Refusal) as refused:
        await world.process(payment)
    assert refused.value.code is ErrorCode.PAYMENT_ALREADY_PROCESSED
    assert (await world.read(payment)).status.value == "SUCCESS"
    assert world.fakes.paystack.book.count("initialize") == 1


async def test_a_live_claim_is_never_overtaken(world: World) -> None:
    payment = await world.payment()
    await world.killed(payment, "P2")
    waiting = asyncio.create_task(world.process(payment))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert world.fakes.paystack.book.calls == []
    world.clock.move(LEASE)
    await waiting
    assert world.fakes.paystack.book.count("initialize") == 1


async def test_a_late_claimant_cannot_record_over_the_one_who_took_over(world: World) -> None:
    payment = await world.payment()
    world.fakes.paystack.book.faults.append(Fault.SLOW)
    slow = asyncio.create_task(world.process(payment))

    await until_claimed(world, payment)
    world.clock.move(LEASE)
    second = await world.other_process().checkout.process(payment.reference, ProcessPayment(gateway_slug="provider_a"))
    first = await slow
    assert first.checkout_url == second.checkout_url
    assert len(await handed_off(world, payment)) == 1


async def test_a_success_event_between_call_and_record_wins_over_the_hand_off(world: World) -> None:
    payment = await world.payment()
    await world.killed(payment, "P4")
    fake = world.fakes.paystack
    fake.pay(payment.reference)
    event = fake.event(fake.book.charges[payment.reference])
    await world.services.provider_events.receive(PROVIDERS[0].routes[0], event.body, event.headers)
    assert (await world.read(payment)).status.value == "SUCCESS"
    world.clock.move(LEASE)
    with pytest.raises(Refusal) as refused:
        await world.process(payment)
    assert refused.value.code is ErrorCode.PAYMENT_ALREADY_PROCESSED
