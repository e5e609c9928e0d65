"""Verifies and reconcilers of two servers over one database: each asks a provider in place of all."""

import asyncio

import pytest

from payagg.domain.attempt import VERIFY_EVERY
from payagg.domain.payment import Status
from tests.support.provider_world import World


@pytest.mark.rule("checkout.9")
async def test_64_verifies_at_once_share_one_provider_call_and_one_event(world: World) -> None:
    payment = await world.handed_over()
    servers = [world.services.verification, world.other_process().verification]

    async def ask() -> set[Status]:
        answers = await asyncio.gather(*(servers[n % 2].verify(payment.reference) for n in range(64)))
        return {answer.status for answer in answers}

    assert await ask() == {Status.PENDING}
    world.fakes.paystack.pay(payment.reference)
    assert await ask() == {Status.PENDING}  # less than two seconds later nobody is asked
    assert world.fakes.paystack.book.count("verify") == 1
    world.clock.move(VERIFY_EVERY)
    assert Status.SUCCESS in await ask()
    assert world.fakes.paystack.book.count("verify") == 2
    assert await world.events(payment) == (2, 2)  # pending, then success
