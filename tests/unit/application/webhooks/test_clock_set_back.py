"""The database's clock was days ahead: nothing waits for that date, and nothing that ended opens again."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from payagg_testing.builders import MINUTE, SANDBOX
from payagg_testing.clocks import START

from payagg.application.upkeep.sweeps import pull_back_instants
from payagg.domain.attempt import LEASE
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.health import Health
from payagg.domain.payment import CHECKOUT_TTL, Status
from payagg.domain.report import Outcome
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with

AHEAD = timedelta(days=3)


async def test_the_worker_asks_although_the_next_ask_is_dated_ahead_and_then_by_the_schedule(shop: MemoryShop) -> None:
    shop.clock.move(AHEAD)
    reference = await shop.handed_over()
    await shop.verification.verify(reference)
    shop.clock.set(START + MINUTE)
    assert [await pull_back_instants(shop.store, shop.clock) for _ in range(2)] == [1, 0]
    await shop.reconciler.run_once()
    [attempt] = await shop.attempts(reference)
    assert attempt.next_ask_at is not None
    assert shop.clock.now() + MINUTE <= attempt.next_ask_at < shop.clock.now() + 2 * MINUTE
    shop.says(Outcome.SUCCEEDED)
    shop.clock.set(attempt.next_ask_at)
    await shop.reconciler.run_once()
    assert (await shop.payment(reference)).status is Status.SUCCESS


async def test_a_pause_of_a_provider_ends_however_far_ahead_its_end_is_dated(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    await shop.pause(START + AHEAD)
    shop.says(Outcome.SUCCEEDED)
    assert (await shop.verification.verify(reference)).status is Status.SUCCESS
    assert Health("a", SANDBOX, 5, START + Health.LONGEST_PAUSE, Health.LONGEST_PAUSE).is_open(START)


@pytest.mark.parametrize("is_alive", [True, False])
async def test_a_claim_that_is_dated_ahead_has_its_lease_from_when_it_is_seen(shop: MemoryShop, is_alive: bool) -> None:
    shop.clock.move(AHEAD)
    reference = await shop.initiated()
    call, may_answer = await shop.call_under_way(reference)
    shop.clock.set(START)
    other = asyncio.create_task(shop.process(reference))
    while (await shop.attempts(reference))[0].lease_until != START + LEASE:  # noqa: ASYNC110 - it is written there
        await asyncio.sleep(0)
    assert shop.a.fetched == []
    if is_alive:
        may_answer.set()
        assert await other == await call
    else:
        call.cancel()
        shop.a.may_answer = None
        shop.clock.move(LEASE)
        await other
    assert len(shop.a.fetched) == (0 if is_alive else 1)


TOLD: dict[str, Callable[[MemoryShop, str], Awaitable[object]]] = {
    "read": lambda shop, reference: shop.payments.read(reference, SHOP, SANDBOX),
    "page": lambda shop, reference: shop.checkout.page(reference),
    "process": lambda shop, reference: shop.process(reference),
    "verify": lambda shop, reference: shop.verification.verify(reference),
    "initiate": lambda shop, _: shop.initiated(idempotency_key="order-7"),
}


@pytest.mark.parametrize("told", TOLD)
async def test_a_payment_told_as_expired_stays_so_when_the_clock_goes_back(shop: MemoryShop, told: str) -> None:
    reference = await shop.initiated(idempotency_key="order-7")
    shop.clock.move(CHECKOUT_TTL)
    with suppress(Refusal):
        await TOLD[told](shop, reference)
    shop.clock.set(START)
    assert (await shop.payment(reference)).status is Status.FAILED
    assert await shop.events(reference) == ["payment.failed"]
    assert await refused_with(shop.process(reference)) == (ErrorCode.PAYMENT_EXPIRED, None)
