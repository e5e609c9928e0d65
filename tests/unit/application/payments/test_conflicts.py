"""A change that the database rolled back by a conflict is made again, whole and once, by every use case about money."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from payagg_testing.builders import AN_ADMIN, SANDBOX, a_business, a_report
from payagg_testing.memory import MemoryStore
from payagg_testing.memory.store import MemoryTransaction

from payagg.adapters.providers import PROVIDERS
from payagg.application.accounts.api_keys import GenerateApiKey
from payagg.application.payments.expiry import store_expiry, sweep_expired
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.application.use_case import retry_on_conflict
from payagg.domain.attempt import CHECK_AFTER
from payagg.domain.payment import CHECKOUT_TTL, Status
from payagg.domain.report import FaultKind, Outcome
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with

SIGNED = {"x-provider_a-signature": "account of provider_a"}


class ConflictingStore(MemoryStore):
    """Rolls each change back `times` times before it lets it through; its own single calls repeat themselves."""

    times = 0
    rolled_back = 0
    _tries = 0

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[MemoryTransaction]:
        before = self.state.snapshot()
        async with MemoryStore.begin(self) as tx:
            yield tx
            if self.state.snapshot() == before:
                return
            self._tries += 1
            if self._tries <= self.times:
                self.rolled_back += 1
                raise Conflict("another was quicker")
            self._tries = 0

    add_payment = retry_on_conflict(MemoryStore.add_payment)
    begin_check = retry_on_conflict(MemoryStore.begin_check)
    keep_event = retry_on_conflict(MemoryStore.keep_event)


async def a_shop(times: int = 1) -> tuple[MemoryShop, ConflictingStore]:
    store = ConflictingStore()
    shop = await MemoryShop(store=store).open()
    store.times = times
    return shop, store


async def test_a_payment_goes_through_its_life() -> None:
    shop, store = await a_shop()
    verified, told, asked, simulated = [await shop.handed_over() for _ in range(4)]
    assert store.rolled_back == 4 * 4, "payment, claim, note of the call and hand-off of each"
    shop.says(Outcome.SUCCEEDED)
    assert (await shop.verification.verify(verified)).status is Status.SUCCESS
    body = shop.a.event(a_report(provider_reference=told), 1)
    await shop.services.provider_events.receive(PROVIDERS[0].routes[0], body, SIGNED)
    await shop.payments.simulate(simulated, "success", SHOP, by=AN_ADMIN)
    shop.clock.move(CHECK_AFTER[0] * 2)
    await shop.reconciler.run_once()
    for reference in (verified, told, asked, simulated):
        assert (await shop.payment(reference)).status is Status.SUCCESS
        assert sorted(await shop.events(reference)) == ["payment.pending", "payment.success"]
    [event] = store.state.inbox.values()
    assert (event.result, event.attempts) == ("MOVED", 1)
    assert shop.a.charges.total() == 4


async def test_failures_expiry_keys_and_test_payments_too() -> None:
    shop, store = await a_shop()
    made = await shop.payments.initiate_test(DashboardPayment(amount=500), a_business(SHOP), by=AN_ADMIN)
    reference = await shop.initiated()
    shop.a.start_fault = FaultKind.TIMEOUT
    await refused_with(shop.process(reference))
    key = await shop.services.api_keys.generate(SHOP, GenerateApiKey(environment=SANDBOX, name="Till"), by=AN_ADMIN)
    await shop.services.api_keys.revoke(SHOP, key.id, by=AN_ADMIN)
    assert store.rolled_back == 7
    shop.clock.move(CHECKOUT_TTL + timedelta(seconds=1))
    read = await store_expiry(shop.services.settlement, store.state.payments[reference])
    assert (read.status, await sweep_expired(shop.services.settlement)) == (Status.FAILED, 1)
    assert {(await shop.payment(one)).status for one in (made.payment.reference, reference)} == {Status.FAILED}


async def test_the_reconcilers_probe_after_a_pause_too() -> None:
    shop, store = await a_shop(times=0)
    reference = await shop.handed_over()
    await shop.pause(shop.clock.now())
    store.times = 1
    shop.says(Outcome.SUCCEEDED)
    shop.clock.move(CHECK_AFTER[0] * 2)
    assert await shop.reconciler.run_once() == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS
    assert store.rolled_back >= 2  # when it was let through, and when its answer was kept


async def test_what_keeps_conflicting_is_given_up() -> None:
    shop, store = await a_shop(times=3)
    assert await shop.handed_over()
    store.times = 4
    with pytest.raises(Unavailable):
        await shop.process(await shop.initiated())


async def test_without_the_database_a_claim_is_refused_and_an_expiry_waits_for_the_sweep(
    shop: MemoryShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise Unavailable("no connection")

    payment = await shop.payment(await shop.initiated())
    with monkeypatch.context() as down:
        down.setattr(shop.store, "begin", gone)
        with pytest.raises(Unavailable):
            await shop.process(payment.reference)
        shop.clock.move(CHECKOUT_TTL)
        assert (await store_expiry(shop.services.settlement, payment)).status is Status.FAILED
    assert await shop.payment(payment.reference) == payment  # to be stored later
    assert (await store_expiry(shop.services.settlement, payment)).status is Status.FAILED
    assert (await shop.payment(payment.reference)).status is Status.FAILED
