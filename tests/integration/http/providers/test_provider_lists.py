"""The lists of both providers, read from their fakes over real HTTP; what was planted in them is found."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from payagg_testing.provider_faults import FakeServers, Fault

from payagg.adapters.providers import listing
from payagg.adapters.providers.registry import lists_of
from payagg.application.ports.providers import LinePage
from payagg.domain.reconciliation import LineKind
from payagg.domain.report import FaultKind, Outcome, ProviderFault
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import FakeCharge, WebhookMode
from tests.support.provider_rigs import PUBLIC_KEYS, SECRET_KEYS, credentials_a, credentials_b, fakes_running

LIVE = Environment.LIVE
DAY = datetime(2025, 1, 31, tzinfo=UTC)
NOON, NEXT = DAY + timedelta(hours=12), DAY + timedelta(days=1)
REFERENCE = "PAY-20250131-7K2M9X"


def a_charge(number: int, reference: str = "", status: str = "success", **facts: object) -> FakeCharge:
    reference, key = reference or f"PAY-20250131-{number:06}", SECRET_KEYS["live"]
    charge = FakeCharge(reference, 150_000, "NGN", "live", number, status, key, created_at=NOON)
    return replace(charge, **facts)  # type: ignore[arg-type]


@pytest.fixture
async def fakes(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeServers]:
    monkeypatch.setattr(listing, "WAIT_SECONDS", 0.01)
    async with fakes_running() as fakes:
        for book in (fakes.paystack.book, fakes.payaza.book):
            book.now = lambda: NOON
            book.webhooks = WebhookMode.HELD
        yield fakes


async def read(fakes: FakeServers, slug: str, kind: LineKind, deadline: float = 15.0) -> list[LinePage]:
    lists = lists_of(allow_loopback=True, deadline=deadline)[slug]
    credentials = credentials_a(fakes) if slug == "provider_a" else credentials_b(fakes)
    return [page async for page in lists.lines(kind, DAY, NEXT, credentials, LIVE)]


def told(fakes: FakeServers, *charges: FakeCharge) -> None:
    for charge in charges:
        fakes.paystack.book.charges[charge.reference] = charge


async def test_every_page_of_a_list_is_read_and_no_more_than_the_days_asked_for(fakes: FakeServers) -> None:
    told(fakes, *(a_charge(number) for number in range(1, 251)))
    told(fakes, a_charge(300, created_at=NEXT), a_charge(301, created_at=DAY - timedelta(seconds=1)))
    told(fakes, a_charge(302, mode="test", key=SECRET_KEYS["test"]))
    pages = await read(fakes, "provider_a", LineKind.CHARGE)
    assert [(len(page.lines), page.total) for page in pages] == [(100, 250), (100, 250), (50, 250)]
    assert {line.id for page in pages for line in page.lines} == {str(number) for number in range(1, 251)}
    line = pages[0].lines[0]
    assert (line.kind, line.amount, line.at) == (LineKind.CHARGE, 150_000, NOON)
    assert (line.report.outcome, line.report.environment) == (Outcome.SUCCEEDED, LIVE)


async def test_pages_shorter_than_asked_for_are_read_until_all_that_there_are(fakes: FakeServers) -> None:
    told(fakes, *(a_charge(number) for number in range(1, 101)))
    fakes.paystack.page_max = 50
    assert [len(page.lines) for page in await read(fakes, "provider_a", LineKind.CHARGE)] == [50, 50]


async def test_requests_keep_their_pace(fakes: FakeServers) -> None:
    told(fakes, *(a_charge(number) for number in range(1, 301)))
    began = time.monotonic()
    await read(fakes, "provider_a", LineKind.CHARGE)  # four requests: the last page is empty
    assert fakes.paystack.book.count("list transaction") == 4
    assert time.monotonic() - began >= 3 / listing.REQUESTS_A_SECOND


async def test_a_line_that_nobody_can_read_is_named_by_its_place_and_the_rest_is_read(fakes: FakeServers) -> None:
    told(fakes, a_charge(1))
    fakes.paystack.broken = [7, {"id": 9, "reference": REFERENCE, "status": "success", "amount": 1.5}, {"status": "x"}]
    (page,) = await read(fakes, "provider_a", LineKind.CHARGE)
    assert [line.id for line in page.lines] == ["1"]
    assert page.unreadable == [f"charge list, page 1, item {number}" for number in (2, 3, 4)]


async def test_what_is_not_ours_keeps_its_amount_and_no_reference_of_ours(fakes: FakeServers) -> None:
    told(fakes, a_charge(1, "order 7"), a_charge(2, REFERENCE + ".x"))
    (page,) = await read(fakes, "provider_a", LineKind.CHARGE)
    assert sorted(line.reference for line in page.lines) == ["other:PAY-20250131-7K2M9X", "other:order 7"]


async def test_a_refund_and_a_dispute_are_read_as_their_events_would_be(fakes: FakeServers) -> None:
    told(fakes, a_charge(5_000, REFERENCE))
    fakes.paystack.refund(REFERENCE, 50_000, silently=True)
    fakes.paystack.dispute(REFERENCE, silently=True)
    assert fakes.paystack.book.waiting == []
    ((refund,),) = [page.lines for page in await read(fakes, "provider_a", LineKind.REFUND)]
    ((dispute,),) = [page.lines for page in await read(fakes, "provider_a", LineKind.DISPUTE)]
    assert (refund.reference, refund.amount, refund.report.outcome) == (REFERENCE, 50_000, Outcome.REVERSED)
    assert (dispute.reference, dispute.amount, dispute.report.outcome) == (REFERENCE, 150_000, Outcome.DISPUTED)
    assert fakes.paystack.book.count("fetch", "5000") == 1  # the list names its transaction by number alone
    fakes.paystack.book.returns = [replace(one, status="pending") for one in fakes.paystack.book.returns]
    ((refund,),) = [page.lines for page in await read(fakes, "provider_a", LineKind.REFUND)]
    assert refund.report.outcome is Outcome.PENDING


async def test_a_refund_that_a_dispute_made_is_left_for_the_dispute_to_tell(fakes: FakeServers) -> None:
    told(fakes, a_charge(5_000, REFERENCE))
    fakes.paystack.refund(REFERENCE, silently=True)
    fakes.paystack.book.returns = [replace(one, of_dispute=77) for one in fakes.paystack.book.returns]
    ((refund,),) = [page.lines for page in await read(fakes, "provider_a", LineKind.REFUND)]
    assert (refund.reference, refund.amount, refund.report.outcome) == (REFERENCE, 150_000, Outcome.PENDING)


async def test_a_dispute_that_paystack_put_aside_waits_for_nobody(fakes: FakeServers) -> None:
    """It is over; where the money is says how."""
    told(fakes, a_charge(5_000, REFERENCE))
    fakes.paystack.dispute(REFERENCE, silently=True)
    fakes.paystack.book.returns = [replace(one, status="archived") for one in fakes.paystack.book.returns]
    for status, state in (("success", "won"), ("reversed", "lost")):
        fakes.paystack.book.charges[REFERENCE].status = status
        ((dispute,),) = [page.lines for page in await read(fakes, "provider_a", LineKind.DISPUTE)]
        assert dispute.report.details["state"] == state


async def test_provider_b_lists_refunds_and_chargebacks_in_naira(fakes: FakeServers) -> None:
    fakes.payaza.book.charges[REFERENCE] = a_charge(1, REFERENCE, "Completed", key=PUBLIC_KEYS["live"], amount=150_050)
    fakes.payaza.refund(REFERENCE, 50_025)
    statuses = {"Pending": "opened", "Processing": "opened", "WON": "won", "Lost": "lost", "Accepted": "accepted"}
    for status in statuses:
        fakes.payaza.dispute(REFERENCE, status)
    ((refund,),) = [page.lines for page in await read(fakes, "provider_b", LineKind.REFUND)]
    assert fakes.payaza.book.count("query", REFERENCE) == 1  # the list has Payaza's own reference of it alone
    (disputes,) = [page.lines for page in await read(fakes, "provider_b", LineKind.DISPUTE)]
    assert (refund.reference, refund.amount, refund.report.outcome) == (REFERENCE, 50_025, Outcome.REVERSED)
    assert refund.report.details == {"refundId": refund.id}
    for dispute, state in zip(reversed(disputes), statuses.values(), strict=True):  # newest first
        assert (dispute.reference, dispute.amount, dispute.report.outcome) == (REFERENCE, 150_050, Outcome.DISPUTED)
        assert (dispute.report.details, dispute.report.word) == ({"disputeId": dispute.id, "state": state}, state)


async def test_what_is_not_ours_is_asked_about_once_and_stays_the_accounts_own(fakes: FakeServers) -> None:
    book = fakes.payaza.book
    for number, reference in enumerate(("order 7", REFERENCE), 1):
        book.charges[reference] = a_charge(number, reference, "Completed", key=PUBLIC_KEYS["live"])
        for _ in range(2):
            fakes.payaza.refund(reference, 100)
    del book.charges[REFERENCE]  # Payaza does not know it
    (page,) = await read(fakes, "provider_b", LineKind.REFUND)
    assert {line.reference for line in page.lines} == {"other:P-C-20250101-1", "other:P-C-20250101-2"}
    assert book.count("query") == 2


async def test_provider_b_is_asked_for_page_after_page_until_the_last(fakes: FakeServers) -> None:
    fakes.payaza.book.charges[REFERENCE] = a_charge(1, REFERENCE, "Completed", key=PUBLIC_KEYS["live"])
    for _ in range(101):
        fakes.payaza.refund(REFERENCE, 100)
    pages = await read(fakes, "provider_b", LineKind.REFUND)
    assert [len(page.lines) for page in pages] == [100, 1]
    assert {line.id for page in pages for line in page.lines} == {str(one.id) for one in fakes.payaza.book.returns}


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.RATE_LIMITED, Fault.RESET])
async def test_a_read_that_failed_in_passing_is_tried_again(fakes: FakeServers, fault: Fault) -> None:
    told(fakes, a_charge(1))
    fakes.paystack.book.faults.append(fault)
    (page,) = await read(fakes, "provider_a", LineKind.CHARGE)
    assert [line.id for line in page.lines] == ["1"]


@pytest.mark.parametrize(
    ("fault", "kind", "calls"),
    [(Fault.HANG, FaultKind.TIMEOUT, listing.TRIES), (Fault.REFUSED_KEY, FaultKind.BAD_CREDENTIALS, 1)],
)
async def test_a_list_that_cannot_be_had_is_a_fault_in_bounded_time(
    fakes: FakeServers, fault: Fault, kind: FaultKind, calls: int
) -> None:
    fakes.paystack.book.faults.extend([fault] * 9)
    with pytest.raises(ProviderFault) as raised:
        await read(fakes, "provider_a", LineKind.CHARGE, deadline=0.3)
    assert raised.value.kind is kind
    assert len(fakes.paystack.book.faults) == 9 - calls
