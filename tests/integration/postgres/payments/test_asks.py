"""Verifies and reconcilers of two servers over one database: each asks a provider in place of all."""

import asyncio

import pytest

from payagg.application.payments.status_checks import HOLD, RATE
from payagg.domain.attempt import CHECK_AFTER, VERIFY_EVERY
from payagg.domain.payment import Status
from payagg.domain.rate_limit import EPOCH
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


async def test_two_workers_ask_once_about_each_payment(world: World) -> None:
    payments = [await world.handed_over() for _ in range(12)]
    world.clock.move(CHECK_AFTER[0] * 2)
    other, reconciler = world.other_process(), world.services.reconciler
    book = world.fakes.paystack.book
    async with world.services.store.begin() as tx:  # as the first worker does
        claims = [tx.attempts.due_checks(*share, world.clock.now(), RATE, HOLD, EPOCH) for share in reconciler.shares()]
        assert sum([len(await claim) for claim in claims]) == len(payments)
    assert await other.reconciler.run_once() == 0
    world.clock.move(HOLD)
    await asyncio.gather(*(w.reconciler.run_once() for w in (world.services, other, world.services, other)))
    assert {payment.reference: book.count("verify", payment.reference) for payment in payments} == {
        payment.reference: 1 for payment in payments
    }
