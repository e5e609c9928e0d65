"""After a restore into the past: what providers know of the time that the database lost is found."""

import copy
import time
from dataclasses import dataclass, field
from unittest.mock import AsyncMock

import pytest
from payagg_testing.builders import AN_ADMIN, HOUR, MINUTE
from payagg_testing.clocks import START

from payagg.application.payments.settlement import Settlement
from payagg.application.ports.outside import Unavailable
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import ATTEMPTS_MAX, CHECK_AFTER, AttemptState, Charge
from payagg.domain.errors import ErrorCode
from payagg.domain.payment import Status
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderReport
from payagg.domain.values import Environment
from payagg.extensions.catchup import catch_up
from payagg.extensions.catchup.catch_up import CatchUp, CaughtUp, catch_up_over
from tests.support.memory_shop import MemoryShop, StandIn
from tests.support.refusals import refused_with

RATE = 1_000  # calls of a provider in a second


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

    async def paid_and_lost(self) -> str:
        """A LIVE payment that was begun at provider_b and paid there, of which nothing is known here."""
        reference = await self.initiated(Environment.LIVE)
        self.keep()
        self.clock.move(MINUTE)
        await self.process(reference, "provider_b")
        self.pays(self.b, reference)
        self.lose()
        return reference

    async def catch_up(self) -> CaughtUp:
        return await catch_up_over(self.services).run(START, by=AN_ADMIN)


@pytest.fixture
async def shop(monkeypatch: pytest.MonkeyPatch) -> RestoredShop:
    monkeypatch.setattr(catch_up, "RATE", RATE)
    return await RestoredShop().begun()


@pytest.mark.parametrize(
    "story", ["the attempt was lost", "the attempt was known", "the run died after its first commit"]
)
async def test_a_payment_that_was_begun_and_paid_since_is_paid_here_too(
    shop: RestoredShop, story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = await shop.initiated()
    shop.keep()
    shop.clock.move(MINUTE)
    payer, gate = await shop.call_under_way(reference)
    if story == "the attempt was known":
        shop.keep()
    gate.set()
    await payer
    shop.pays(shop.a, reference)
    shop.lose()
    # Long after its hour: it was begun within.
    shop.clock.move(5 * HOUR)
    if story == "the attempt was known":
        shop.a.fetch_fault = FaultKind.TIMEOUT
        assert (await shop.catch_up()).unanswered == (reference,)
        shop.a.fetch_fault = None
    elif story == "the run died after its first commit":
        with monkeypatch.context() as dying:
            dying.setattr(Settlement, "report", AsyncMock(side_effect=Unavailable))
            with pytest.raises(Unavailable):
                await shop.catch_up()
    is_lost = story == "the attempt was lost"
    assert (await shop.catch_up()).found == ((reference,) if is_lost else ())
    payment = await shop.payment(reference)
    assert (payment.status, payment.gateway, payment.settled_at) == (Status.SUCCESS, "provider_a", START)
    assert await shop.events(reference) == ["payment.success"]
    assert await shop.anomalies() == []
    again = await shop.catch_up()
    assert (again.looked_at, again.found) == (0, ())


async def test_the_last_charge_is_found_behind_all_that_were_turned_down(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    shop.keep()
    shop.a.start_faults = [FaultKind.REJECTED] * (ATTEMPTS_MAX - 1)
    for _ in range(ATTEMPTS_MAX - 1):
        await refused_with(shop.process(reference))
    shop.a.started.clear()  # it turned them down
    await shop.process(reference, "provider_b")
    last = f"{reference}.{ATTEMPTS_MAX}"
    shop.pays(shop.b, last)
    shop.lose()
    assert (await shop.catch_up()).found == (last,)
    assert (await shop.payment(reference)).status is Status.SUCCESS
    states = [attempt.state for attempt in await shop.attempts(reference)]
    assert states == [AttemptState.REFUSED] * (ATTEMPTS_MAX - 1) + [AttemptState.UNKNOWN]


async def test_no_provider_is_asked_faster_than_its_rate(shop: RestoredShop) -> None:
    for _ in range(3):
        await shop.initiated()
    began = time.monotonic()
    await shop.catch_up()
    for provider in (shop.a, shop.b):
        assert len(provider.fetched) == 3 * ATTEMPTS_MAX
    assert time.monotonic() - began >= (3 * ATTEMPTS_MAX - 1) / RATE


@pytest.mark.parametrize("is_hand_off_lost", [True, False], ids=["the attempt was known", "the attempt was lost"])
async def test_where_the_payer_may_have_been_sent_is_passed_over_once_it_answered(
    shop: RestoredShop, is_hand_off_lost: bool
) -> None:
    reference = await shop.initiated()
    if not is_hand_off_lost:
        shop.keep()
    payer, gate = await shop.call_under_way(reference)
    if is_hand_off_lost:
        shop.keep()
    gate.set()
    await payer
    shop.lose()
    shop.clock.move(MINUTE)
    await shop.catch_up()
    shop.a.fetch_fault = FaultKind.TIMEOUT

    async def refuses(slug: str) -> None:
        # The page tells a payer whose choice is refused that nothing was charged, and here something may be.
        assert (await refused_with(shop.process(reference, slug)))[0] is ErrorCode.SERVICE_UNAVAILABLE

    await refuses("provider_b")
    await shop.change("provider_a", credentials=None)
    await refuses("provider_b")
    shop.a.fetch_fault = None
    await shop.change("provider_a", credentials=shop.vault.seal(b'{"account": "other"}', "gw_provider_a"))
    await refuses("provider_b")
    await shop.change("provider_a")
    shop.pays(shop.a, reference, Outcome.PENDING)  # the payer is at it
    for slug in ("provider_a", "provider_b"):
        await refuses(slug)
    assert (len(shop.a.started), shop.b.started) == (1, [])
    shop.pays(shop.a, reference, Outcome.UNPAID)
    await shop.process(reference, "provider_b")
    assert [one.reference for one in shop.b.started] == [f"{reference}.2"]


@pytest.mark.parametrize("was_paid", [False, True])
async def test_what_was_known_is_asked_about_at_once(shop: RestoredShop, was_paid: bool) -> None:
    reference = await shop.handed_over()
    if was_paid:
        shop.pays(shop.a, reference)
    shop.clock.move(2 * HOUR)
    await shop.reconciler.run_once()
    shop.keep()
    shop.pays(shop.a, reference, Outcome.REVERSED if was_paid else Outcome.SUCCEEDED)
    shop.lose()
    assert await shop.reconciler.run_once() == 0, "its next ask is an hour away, or a day"
    assert (await shop.catch_up()).hastened == 1
    assert await shop.reconciler.run_once() == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS
    assert await shop.anomalies() == [AnomalyKind.LATE_REVERSAL] * was_paid


async def test_a_payment_that_nobody_went_on_with_stays_as_it_is(shop: RestoredShop) -> None:
    reference = await shop.initiated()
    live = await shop.initiated(Environment.LIVE)
    done = await shop.catch_up()
    assert (done.looked_at, done.found, done.unanswered) == (2, (), ())
    for one in (reference, live):
        assert (await shop.payment(one)).status is Status.INITIATED
        assert await shop.attempts(one) == []


@pytest.mark.parametrize("fault", [FaultKind.TIMEOUT, None], ids=["no answer", "credentials that do not open"])
async def test_a_provider_that_cannot_be_asked_is_told_and_the_others_are_asked(
    shop: RestoredShop, fault: FaultKind | None
) -> None:
    reference = await shop.paid_and_lost()
    shop.b.fetch_fault = fault
    if fault is None:
        await shop.change("provider_b", credentials=b"sealed under a key that is not here")
    done = await shop.catch_up()
    assert (done.found, done.unanswered) == ((), (reference,))
    assert (len(shop.a.fetched), len(shop.b.fetched)) == (ATTEMPTS_MAX, 1 if fault else 0)
    shop.b.fetch_fault = None
    await shop.change("provider_b", credentials=shop.sealed("provider_b", only="SANDBOX"))
    assert ((await shop.catch_up()).found, len(shop.b.fetched)) == ((), 1 if fault else 0), "nobody can be asked"
    await shop.change("provider_b")
    assert (await shop.catch_up()).found == (reference,)
    assert {attempt.account for attempt in await shop.attempts(reference)} == {"LIVE account of provider_b"}


@pytest.mark.rule("access.9")
async def test_each_run_is_recorded_and_one_that_is_killed_too(
    shop: RestoredShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded() -> list[str]:
        entries = [one for one in shop.store.state.audit.values() if one.object_kind == "restore"]
        assert {(one.subject, one.object_id) for one in entries} == {
            (AN_ADMIN.subject, START.isoformat(timespec="seconds"))
        }
        return [entry.action for entry in entries]

    class KilledRun(BaseException):
        """Which nothing catches."""

    async def killed(*_: object) -> None:
        raise KilledRun

    await shop.catch_up()
    assert recorded() == ["restore.begin_catch_up", "restore.catch_up"]
    monkeypatch.setattr(CatchUp, "_hasten", killed)
    with pytest.raises(KilledRun):
        await shop.catch_up()
    assert recorded() == ["restore.begin_catch_up", "restore.catch_up", "restore.begin_catch_up"]


async def test_an_instant_that_lies_ahead_is_refused(shop: RestoredShop) -> None:
    assert (await refused_with(catch_up_over(shop.services).run(START + HOUR, by=AN_ADMIN)))[1] == "since"


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.UNPAID])
async def test_what_was_passed_over_is_asked_about_to_the_end_since_its_payer_may_be_there(
    shop: RestoredShop, outcome: Outcome
) -> None:
    reference = await shop.initiated()
    shop.keep()
    await shop.process(reference)
    shop.lose()
    await shop.catch_up()
    assert (await shop.process(reference, "provider_b")).gateway == "provider_b"
    shop.pays(shop.a, reference, outcome)  # on the page where the payer was
    for after in CHECK_AFTER:
        shop.clock.set(START + after * 1.2)
        await shop.reconciler.run_once()
    if outcome is Outcome.SUCCEEDED:
        assert (await shop.payment(reference)).status is Status.SUCCESS
        return
    assert (await shop.payment(reference)).failure_reason == "EXPIRED"
    [expired] = [one for one in await shop.store.transaction.payments.transitions(reference) if one.reason == "EXPIRED"]
    [first, second] = await shop.attempts(reference)
    assert (first.state, first.next_ask_at) == (AttemptState.REFUSED, None)
    assert expired.at == second.last_ask_at, "by the answer about the charge to which the payer was sent"
