"""What happens to work that is under way when its payment moves to another cell: nothing is torn, nothing invented."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from payagg_testing.builders import AN_ADMIN, a_payment, a_report

from payagg.adapters.providers import PROVIDERS
from payagg.application.ports.elsewhere import Elsewhere
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.store import Transaction
from payagg.domain.errors import ErrorCode, misdirected_refusal
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.receivers import until
from tests.support.refusals import refusal_in, refused_with

OTHER = "PBX"


@dataclass(frozen=True)
class Left(Elsewhere):
    """What is said of a payment that is not here."""

    answer: Exception = field(default_factory=lambda: misdirected_refusal(OTHER, "The other cell has this now."))

    away: list[str] = field(default_factory=list)
    handed: list[tuple[ProviderEvent, str]] = field(default_factory=list)

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        raise self.answer

    async def hand_over(self, event: ProviderEvent, cell: str) -> None:
        if cell in self.away:
            raise Unavailable("away")
        self.handed.append((event, cell))


@pytest.fixture
async def shop() -> MemoryShop:
    return await MemoryShop().open()


def leave(shop: MemoryShop) -> None:
    """What a move takes of the cell that it leaves."""
    state = shop.store.state
    for table in (state.api_keys, state.members, state.payments, state.attempts, state.businesses):
        table.clear()


async def test_what_a_provider_is_being_asked_about_is_judged_elsewhere(shop: MemoryShop) -> None:
    verified, _ = await shop.handed_over(), await shop.handed_over()
    shop.a.may_answer = asyncio.Event()
    shop.says(Outcome.SUCCEEDED)
    verifying = asyncio.create_task(shop.verification.verify(verified))
    await until(lambda: bool(shop.a.fetched))
    shop.clock.move(timedelta(minutes=2))
    reconciling = asyncio.create_task(shop.reconciler.run_once())
    await until(lambda: len(shop.a.fetched) == 3)
    leave(shop)
    shop.a.may_answer.set()
    assert (await refused_with(verifying))[0] is ErrorCode.PAYMENT_NOT_FOUND  # which a forwarding record turns into 421
    assert await reconciling == 2
    assert await shop.anomalies() == []


@pytest.mark.parametrize(
    ("fault", "code"), [(None, ErrorCode.PAYMENT_NOT_FOUND), (FaultKind.TIMEOUT, ErrorCode.GATEWAY_NOT_AVAILABLE)]
)
async def test_a_charge_that_outlasts_its_claim_is_recorded_by_the_other_cell(
    shop: MemoryShop, fault: FaultKind | None, code: ErrorCode
) -> None:
    reference = await shop.initiated()
    shop.a.start_fault = fault
    processing, gate = await shop.call_under_way(reference)
    leave(shop)  # after its lease
    gate.set()
    assert (await refused_with(processing))[0] is code
    assert await shop.attempts(reference) == []


async def test_an_event_says_where_its_payment_is_and_makes_no_anomaly(shop: MemoryShop) -> None:
    await shop.handed_over()
    settlement = shop.services.settlement
    report = await shop.a.fetch_charge(shop.a.started[0])
    leave(shop)
    object.__setattr__(settlement, "elsewhere", Left(answer=Unavailable("on its way")))
    with pytest.raises(Unavailable):
        await settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a")
    object.__setattr__(settlement, "elsewhere", Left())
    moved = await refusal_in(settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a"))
    assert (moved.code, moved.cell) == (ErrorCode.MISDIRECTED_REQUEST, OTHER)
    assert await shop.anomalies() == []


async def test_a_test_payment_is_not_made_when_the_keys_have_left_meanwhile(shop: MemoryShop) -> None:
    shop.store.state.api_keys.clear()
    refused = await refused_with(shop.payments._add_recorded(a_payment(business_id=SHOP), AN_ADMIN))
    assert refused[0] is ErrorCode.NO_SANDBOX_KEY
    assert shop.store.state.payments == {}


async def signed_event(shop: MemoryShop, body: bytes) -> None:
    route = PROVIDERS[0].routes[0]
    await shop.services.provider_events.receive(route, body, {"x-provider_a-signature": "account of provider_a"})


async def test_an_event_about_what_left_is_kept_until_the_other_cell_has_handled_it(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    events, own = shop.services.provider_events, Left(answer=Unavailable("on its way"))
    for asking in (events, shop.services.settlement):
        object.__setattr__(asking, "elsewhere", own)
    body = shop.a.event(a_report(Outcome.SUCCEEDED, provider_reference=reference), 1)
    leave(shop)

    async def results() -> list[str | None]:
        shop.clock.move(timedelta(hours=1))
        await events.retry_due()
        return [event.result for event in shop.store.state.inbox.values()]

    await signed_event(shop, body)
    assert await results() == [None]
    object.__setattr__(own, "answer", misdirected_refusal(OTHER))
    own.away.append(OTHER)
    assert await results() == [None]
    own.away.clear()
    assert await results() == ["HANDED_OVER"]
    assert await results() == ["HANDED_OVER"]
    [(event, cell)] = own.handed
    assert (event.body, cell) == (body, OTHER)
    assert await shop.anomalies() == []


async def test_an_event_that_names_no_payment_is_kept(shop: MemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
    object.__setattr__(shop.services.provider_events, "elsewhere", Left())
    monkeypatch.setattr(shop.a, "read_event", lambda body: None)
    await signed_event(shop, b"not about us")

    def unreadable(body: bytes) -> ProviderReport | None:
        raise ProviderFault(FaultKind.MALFORMED)

    monkeypatch.setattr(shop.a, "read_event", unreadable)
    assert (await refused_with(signed_event(shop, b"no event")))[0] is ErrorCode.VALIDATION_ERROR
    assert [event.result for event in shop.store.state.inbox.values()] == ["IGNORED", "MALFORMED"]


async def test_what_left_before_it_was_asked_about_is_asked_about_elsewhere(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    [attempt] = await shop.attempts(reference)
    leave(shop)
    await shop.reconciler._ask(attempt)
    assert shop.a.fetched == []
