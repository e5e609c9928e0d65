"""One hand-off and one charge, whoever dies."""

import asyncio

import pytest

from payagg.application.schemas.checkout import ProcessPayment
from payagg.domain.attempt import LEASE, AttemptState
from payagg.domain.payment import Payment
from payagg.entrypoints.dev.fake_providers import Fault
from tests.support.provider_world import PATIENCE, World

COMMAND = ProcessPayment(gateway_slug="provider_a")


async def handed_off(world: World, payment: Payment) -> list[str]:
    return [a.provider_reference for a in await world.attempts(payment) if a.state is AttemptState.HANDED_OFF]


@pytest.mark.parametrize(
    ("label", "slug", "calls"),
    [
        # The provider knows of a charge that nobody was sent to; it is asked before a second one is begun.
        ("P4", "provider_a", ["initialize", "verify", "initialize"]),
        ("P5", "provider_a", ["initialize"]),
        ("P4", "provider_b", []),
    ],
)
async def test_a_claimant_killed_at_any_step_leaves_at_most_one_hand_off(
    world: World, label: str, slug: str, calls: list[str]
) -> None:
    payment = await world.payment()
    await world.dies_at(label, "process", payment.reference, slug)
    world.clock.move(LEASE)  # the dead claimant's lease runs out
    answers = await asyncio.gather(*(world.process(payment, slug) for _ in range(8)))
    assert len({answer.checkout_url for answer in answers}) == 1
    [given] = await handed_off(world, payment)
    book = world.fakes.paystack.book
    assert [name for name, _ in book.calls] == calls
    if slug == "provider_a":
        assert all(charge.opened == 1 for charge in book.charges.values())
        assert str(book.charges[given].id) in answers[0].checkout_url
        world.fakes.paystack.pay(given)
        assert book.count_paid(payment.reference) == 1


async def test_a_late_claimant_cannot_record_over_the_one_who_took_over(world: World) -> None:
    payment = await world.payment()
    world.fakes.paystack.book.faults.append(Fault.SLOW)
    slow = asyncio.create_task(world.process(payment))
    async with asyncio.timeout(PATIENCE):
        while not await world.attempts(payment):  # noqa: ASYNC110 - the claim is in the database
            await asyncio.sleep(0.02)
    world.clock.move(LEASE)
    second = await world.other_process().checkout.process(payment.reference, COMMAND)
    first = await slow
    assert first.checkout_url == second.checkout_url
    assert len(await handed_off(world, payment)) == 1
