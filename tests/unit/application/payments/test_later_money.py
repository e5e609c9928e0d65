"""What merchants are told of money that comes short, over, twice or goes back, and what is kept of a charge."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from payagg_testing.builders import REFERENCE, an_endpoint

from payagg.application.schemas.webhooks import EventBody, Notice
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import ChargeFacts
from payagg.domain.report import Outcome
from tests.unit.application.payments.test_settlement import ReportedPayment

AMOUNT, FEE = 150_000, 2_250


@pytest.fixture
async def world() -> ReportedPayment:
    return await ReportedPayment().with_payment(an_endpoint())


async def notices(world: ReportedPayment) -> list[Notice]:
    """What the events say beside the payment; their numbers have no gap."""
    events, _ = await world.sent()
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    bodies = [msgspec.json.decode(event.body, type=EventBody) for event in events]
    return [body.notice for body in bodies if isinstance(body.notice, Notice)]


async def test_money_that_differs_is_told_by_how_and_a_success_goes_on_in_number(world: ReportedPayment) -> None:
    for received, figures, currency in (
        (AMOUNT - 1, {AMOUNT - 1}, "NGN"),
        (AMOUNT + 1, {AMOUNT + 1}, "NGN"),
        (AMOUNT, {AMOUNT}, "USD"),
        (None, set[int](), "NGN"),
        (AMOUNT + 2, set[int](), "NGN"),  # less than the payment and a fee that was owed on top
    ):
        await world.told(amounts=frozenset(figures), currency=currency, facts=ChargeFacts(received=received))
    await world.told()
    assert await world.events(REFERENCE) == ["payment.pending", *["payment.attention"] * 5, "payment.success"]
    told = await notices(world)
    words = ["UNDERPAID", "OVERPAID", "CURRENCY_MISMATCH", "AMOUNT_UNKNOWN", "UNDERPAID"]
    assert [notice.reason for notice in told] == words
    assert [notice.amount for notice in told] == [AMOUNT - 1, AMOUNT + 1, None, None, None], "dollars are no kobo"
    assert (told[0].expected, told[0].received, told[-1].received) == (AMOUNT, AMOUNT - 1, AMOUNT + 2)
    assert (await world.payment(REFERENCE)).has_adjustments


@pytest.mark.parametrize("is_told_first", [True, False])
async def test_an_underpayment_that_an_event_and_an_answer_tell_is_one(
    world: ReportedPayment, is_told_first: bool
) -> None:
    """provider_b's event proves no figure and names the transaction; its answer does the reverse."""
    event: dict[str, Any] = {"amounts": frozenset(), "facts": ChargeFacts(provider_id="t1", received=AMOUNT // 2)}
    answer = {"amounts": frozenset({AMOUNT // 2}), "facts": ChargeFacts(received=AMOUNT // 2)}
    for told in (event, answer) if is_told_first else (answer, event):
        await world.told(**told)
    assert await world.anomalies() == [AnomalyKind.MISMATCH]
    assert [notice.reason for notice in await notices(world)] == ["UNDERPAID"]


async def test_a_dispute_says_its_id_its_state_and_its_date(world: ReportedPayment) -> None:
    await world.told()
    opened = {"disputeId": "77", "state": "opened", "dueAt": "2025-02-01T10:00:00+00:00"}
    for details in (opened, opened, {"disputeId": "77", "state": "won"}):
        await world.told(Outcome.DISPUTED, amounts=frozenset(), details=details)  # no part is named
    told = [(one.dispute_id, one.state, one.due_at, one.amount) for one in await notices(world)]
    assert told == [("77", "opened", "2025-02-01T10:00:00Z", AMOUNT), ("77", "won", None, AMOUNT)]


@pytest.mark.parametrize(("received", "net"), [(AMOUNT, AMOUNT - FEE), (AMOUNT + FEE, AMOUNT)])
async def test_what_is_known_of_a_charge_is_kept_as_it_was_first_known(
    world: ReportedPayment, received: int, net: int
) -> None:
    paid_at = datetime(2025, 1, 1, 10, tzinfo=UTC)
    first = ChargeFacts("t1", "card", None, received, paid_at)
    later = replace(first, channel="bank", paid_at=paid_at + timedelta(hours=1))
    # A fee that nobody knows, or that is no part of what was paid, is none.
    for facts in (first, *(replace(later, fee=known) for known in (AMOUNT * 2, FEE, 9))):
        await world.told(facts=facts)
    payment, [attempt] = await world.payment(REFERENCE), await world.attempts(REFERENCE)
    assert (payment.fee, payment.net_amount) == (FEE, net)
    assert (attempt.provider_id, attempt.channel, attempt.paid_at) == (first.provider_id, first.channel, paid_at)
