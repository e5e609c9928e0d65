"""One hand-off, whoever is late."""

import asyncio

from payagg.application.schemas.checkout import ProcessPayment
from payagg.domain.attempt import LEASE, AttemptState
from payagg.entrypoints.dev.fake_providers import Fault
from tests.support.provider_world import PATIENCE, World

COMMAND = ProcessPayment(gateway_slug="provider_a")


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
    assert [one.state for one in await world.attempts(payment)].count(AttemptState.HANDED_OFF) == 1
