"""After a restore into the past: what providers know of the time that the database lost is found."""

import copy
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from payagg.application.catch_up import LOOK_AHEAD, CaughtUp
from payagg.domain.attempt import AttemptState, Charge
from payagg.domain.errors import Refusal
from payagg.domain.payment import Status
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderReport
from payagg.domain.values import Environment
from payagg.testing.builders import AN_ADMIN
from payagg.testing.clocks import START
from tests.support.memory_shop import MemoryShop, StandIn

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@dataclass
class Remembering(StandIn):
    """Knows the charges that were begun there, and what `paid` says of them."""

    paid: dict[str, Outcome] = field(default_factory=dict)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        told = await super().fetch_charge(charge)
        if charge.reference not in {one.reference for one in self.started}:
            return ProviderReport(charge.reference, Outcome.UNPAID, NO_CHARGE)
        outcome = self.paid.get(charge.reference, Outcome.UNPAID)
        return ProviderReport(charge.reference, outcome, "abandoned", told.amounts)


class RestoredShop(MemoryShop):
    """`lose` puts the store back to where `keep` found it; providers keep what they know."""

    async def begun(self) -> "RestoredShop":
        self.a.__class__ = self.b.__class__ = Remembering
        for provider in (self.a, self.b):
            provider.paid = {}  # type: ignore[attr-defined]
        await self.open()
        return self

    def keep(self) -> None:
        self.kept = copy.deepcopy(self.store.state)

    def lose(self) -> None:
        vars(self.store.state).update(vars(copy.deepcopy(self.kept)))

    def pays(self, provider: StandIn, reference: str, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        provider.paid[reference] = outcome  # type: ignore[attr-defined]

    async def catch_up(self) -> CaughtUp:
        return await self.services.catch_up.run(START, by=AN_ADMIN)


@pytest.fixture
async def shop() -> RestoredShop:
    return await RestoredShop().begun()


async def test_a_payment_that_was_begun_and_paid_since_is_paid_here_too(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    shop.keep()
    shop.clock.move(MINUTE)
    await shop.process(reference, "provider_b")
    shop.pays(shop.b, reference)
    shop.lose()
    # Long after its hour: it was begun within.
    shop.clock.move(5 * HOUR)
    assert (await shop.catch_up()).found == (reference,)
    payment = await shop.payment(reference)
    assert (payment.status, payment.gateway, payment.settled_at) == (Status.SUCCESS, "provider_b", START)
    assert await shop.events(reference) == ["payment.success"]
    assert await shop.anomalies() == []
    again = await shop.catch_up()
    assert (again.looked_at, again.found) == (0, ())


async def test_a_charge_that_is_not_paid_yet_is_known_and_asked_about(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    shop.keep()
    await shop.process(reference)
    shop.lose()
    shop.clock.move(MINUTE)
    assert (await shop.catch_up()).found == (reference,)
    [attempt] = await shop.attempts(reference)
    assert (attempt.gateway, attempt.state, attempt.next_ask_at is not None) == (
        "provider_a",
        AttemptState.UNKNOWN,
        True,
    )
    shop.pays(shop.a, reference)
    shop.clock.move(3 * MINUTE)
    await shop.reconciler.run_once()
    assert (await shop.payment(reference)).status is Status.SUCCESS


async def test_charges_behind_one_that_was_never_made_are_found(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    shop.keep()
    shop.a.start_faults = [FaultKind.REJECTED] * (LOOK_AHEAD - 1)
    for _ in range(LOOK_AHEAD - 1):
        with pytest.raises(Refusal):
            await shop.process(reference)
    shop.a.started.clear()  # it turned them down
    await shop.process(reference, "provider_b")
    last = f"{reference}.{LOOK_AHEAD}"
    shop.pays(shop.b, last)
    shop.lose()
    assert (await shop.catch_up()).found == (last,)
    assert (await shop.payment(reference)).status is Status.SUCCESS
    states = [attempt.state for attempt in await shop.attempts(reference)]
    assert states == [AttemptState.REFUSED] * (LOOK_AHEAD - 1) + [AttemptState.UNKNOWN]


async def test_what_was_known_is_asked_about_at_once(shop: RestoredShop) -> None:
    reference = await shop.handed_over()
    shop.clock.move(2 * HOUR)
    await shop.reconciler.run_once()
    shop.keep()
    shop.pays(shop.a, reference)
    shop.lose()
    assert await shop.reconciler.run_once() == 0, "its next ask is an hour away"
    assert (await shop.catch_up()).hastened == 1
    assert await shop.reconciler.run_once() == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS


async def test_a_payment_that_nobody_went_on_with_stays_as_it_is(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    live = await shop.initiated(Environment.LIVE)
    done = await shop.catch_up()
    assert (done.looked_at, done.found, done.unanswered) == (2, (), ())
    for one in (reference, live):
        assert (await shop.payment(one)).status is Status.INITIATED
        assert await shop.attempts(one) == []


async def test_a_provider_that_does_not_answer_is_told(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    shop.keep()
    await shop.process(reference, "provider_b")
    shop.pays(shop.b, reference)
    shop.lose()
    shop.b.fetch_fault = FaultKind.TIMEOUT
    done = await shop.catch_up()
    assert (done.found, done.unanswered) == ((), (reference,))
    shop.b.fetch_fault = None
    assert (await shop.catch_up()).found == (reference,)


async def test_each_run_is_recorded(shop: RestoredShop) -> None:
    await shop.catch_up()
    [entry] = [one for one in shop.store.state.audit.values() if one.action == "restore.catch_up"]
    assert (entry.object_id, entry.subject) == (START.isoformat(timespec="seconds"), AN_ADMIN.subject)


async def test_an_instant_that_lies_ahead_is_refused(shop: RestoredShop) -> None:
    with pytest.raises(Refusal) as refused:
        await shop.services.catch_up.run(START + HOUR, by=AN_ADMIN)
    assert (refused.value.field, refused.value.message) == ("since", "Must not lie ahead.")


async def test_a_provider_whose_credentials_are_gone_is_not_asked(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    shop.keep()
    await shop.process(reference, "provider_b")
    shop.pays(shop.b, reference)
    shop.lose()
    await shop.change("provider_b", credentials=None)
    assert (await shop.catch_up()).found == ()
    assert shop.b.fetched == []
