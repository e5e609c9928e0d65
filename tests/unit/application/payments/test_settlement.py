"""Reports from providers, applied by the settlement use case on the memory store, and what merchants are told then."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from payagg_testing.builders import (
    AN_ADMIN,
    HOUR,
    LIVE,
    NOW,
    REFERENCE,
    SANDBOX,
    a_business,
    a_payment,
    a_report,
    an_attempt,
    an_endpoint,
)

from payagg.adapters.providers import PROVIDERS
from payagg.application.payments.expiry import sweep_expired
from payagg.application.ports.outside import Unavailable
from payagg.application.schemas.webhooks import EventBody, Notice
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.attempt import AttemptState, ChargeFacts
from payagg.domain.delivery import Delivery, Event
from payagg.domain.payment import Status
from payagg.domain.payment_search import PaymentFilter
from payagg.domain.report import Outcome, ProviderReport, ReportEffect
from payagg.domain.webhook import WebhookEndpoint
from payagg.entrypoints.http.checkout_page import words
from tests.contracts.database import put
from tests.support.memory_shop import MemoryShop

AMOUNT, FEE = 150_000, 2_250


class ReportedPayment(MemoryShop):
    """One payment handed to provider_a, its business subscribed, and what the settlement made of reports."""

    async def with_payment(self, *endpoints: WebhookEndpoint, **fields: Any) -> "ReportedPayment":
        payment = a_payment(**fields)
        tx, handed = self.store.transaction, payment.hand_over("provider_a", self.clock.now(), "payer")
        await put(tx, payment, *endpoints, an_attempt(payment, 1, AttemptState.HANDED_OFF))
        await self.services.settlement.write(tx, *handed)
        return self

    async def told(self, outcome: Outcome = Outcome.SUCCEEDED, **report: Any) -> ReportEffect:
        said = a_report(outcome, **report)
        return (await self.services.settlement.report(said, "provider_a", SANDBOX, "inbound")).effect

    async def sent(self) -> tuple[list[Event], list[Delivery]]:
        return await self.store.transaction.webhook_events.of_payment(REFERENCE)


@pytest.fixture
async def world() -> ReportedPayment:
    return await ReportedPayment().with_payment(an_endpoint())


async def test_two_halves_of_a_payment_are_two_facts_and_each_is_told_once(world: ReportedPayment) -> None:
    """A payer whose bank limits a transfer sends the same half twice; the provider's id tells the two apart."""
    for half in ("t1", "t2", "t1", None, "t2"):
        facts = ChargeFacts(provider_id=half, received=75_000)
        assert await world.told(amounts=frozenset({75_000}), facts=facts) is ReportEffect.MISMATCH
    assert await world.anomalies() == [AnomalyKind.MISMATCH] * 2
    assert (await world.events(REFERENCE))[1:] == ["payment.attention"] * 2


@pytest.mark.parametrize(("before", "first"), [("SUCCEEDED", "SECOND_CHARGE"), ("FAILED", "LATE_SUCCESS")])
async def test_who_dies_between_what_came_and_its_return_leaves_the_return_to_the_events_next_try(
    before: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ReportedPayment()
    await world.open()
    await world.with_payment(an_endpoint())
    await world.told(Outcome(before), facts=ChargeFacts(provider_id="t1"))
    body = world.a.event(a_report(Outcome.REVERSED, facts=ChargeFacts(provider_id="t2")), 1)
    begin = world.store.begin

    def begin_until_half() -> Any:
        if world.store.state.anomalies:
            raise Unavailable("the process is gone")
        return begin()

    with monkeypatch.context() as dying:
        dying.setattr(world.store, "begin", begin_until_half)
        signed = {"x-provider_a-signature": "account of provider_a"}
        await world.services.provider_events.receive(PROVIDERS[0].routes[0], body, signed)
    assert await world.anomalies() == [AnomalyKind(first)]
    world.clock.move(HOUR)
    for _ in range(2):
        await world.services.provider_events.retry_due()
    assert (await world.events(REFERENCE))[2:] == ["payment.late_success", "payment.refunded"]


@pytest.mark.parametrize("back", [{"details": {"refundId": "r1"}}, {"facts": ChargeFacts(provider_id="t2")}])
async def test_of_a_reversed_payment_what_another_charge_brought_counts_until_it_goes_back(
    world: ReportedPayment, back: Any
) -> None:
    await world.store.transaction.attempts.add(an_attempt(number=2))
    other: dict[str, Any] = {"provider_reference": f"{REFERENCE}.2"}
    whole, effects = PaymentFilter("biz_1", SANDBOX), []
    for outcome, report in (
        (Outcome.REVERSED, {}),
        (Outcome.SUCCEEDED, {}),  # its event comes after that of the refund
        (Outcome.SUCCEEDED, other),
        (Outcome.REVERSED, other | back),
        (Outcome.REVERSED, other | back),
    ):
        await world.told(outcome, **report)
        effects.append(sum(total.effect for total in await world.store.transaction.adjustments.totals(whole)))
    assert effects == [0, 0, 150_000, 0, 0]
    assert (await world.events(REFERENCE))[1:] == ["payment.reversed", "payment.late_success", "payment.refunded"]


async def test_money_for_an_unknown_reference_is_never_lost() -> None:
    world = ReportedPayment()
    assert await world.told() is ReportEffect.UNKNOWN_PAYMENT
    assert await world.told(Outcome.PENDING) is ReportEffect.UNKNOWN_PAYMENT
    assert await world.anomalies() == [AnomalyKind.UNKNOWN_REFERENCE]


@pytest.mark.rule("payments.15")
async def test_the_sweep_fails_once_what_expired_and_money_after_it_is_kept() -> None:
    fresh = ReportedPayment()
    await fresh.store.add_payment(a_payment())
    await fresh.store.add_payment(a_payment(reference="PAY-20250131-LATER0", now=fresh.clock.now() + HOUR))
    fresh.clock.move(HOUR)
    assert [await sweep_expired(fresh.services.settlement) for _ in range(2)] == [1, 0]
    payment = await fresh.payment(REFERENCE)
    assert (payment.status, payment.failure_reason) == (Status.FAILED, "EXPIRED")
    [transition] = await fresh.store.transaction.payments.transitions(REFERENCE)
    assert payment.settled_at == payment.expires_at == transition.at
    assert (transition.actor, transition.reason) == ("clock", "EXPIRED")
    assert await fresh.events(REFERENCE) == ["payment.failed"]
    # Money that comes now is an anomaly, as no charge is known.
    assert await fresh.told() is ReportEffect.ANOMALY
    assert ((await fresh.payment(REFERENCE)).status, len(await fresh.anomalies())) == (Status.FAILED, 1)


@pytest.mark.rule("webhooks.4")
async def test_each_transition_has_one_event_in_sequence_and_a_delivery_per_subscriber() -> None:
    world = await ReportedPayment().with_payment(
        an_endpoint("whe_all"),
        an_endpoint("whe_success", events=("payment.success",)),
        an_endpoint("whe_failed", events=("payment.failed",)),
        an_endpoint("whe_off", is_active=False),
        an_endpoint("whe_live", LIVE),
        an_endpoint("whe_other", business_id="biz_2"),
    )
    await world.told()
    events, deliveries = await world.sent()
    assert [event.type for event in events] == ["payment.pending", "payment.success"]
    sent = {(delivery.sequence, delivery.endpoint_id) for delivery in deliveries}
    assert sent == {(1, "whe_all"), (2, "whe_all"), (2, "whe_success")}


@pytest.mark.rule("webhooks.17", "webhooks.19")
async def test_an_event_at_the_payments_own_address_is_the_merchants_view_and_no_more() -> None:
    endpoint, own = an_endpoint(events=("payment.failed",)), "https://shop.example/own"
    unsigned = await ReportedPayment().with_payment(an_endpoint(environment=LIVE), webhook_url=own)
    assert (await unsigned.sent())[1] == [], "no endpoint of its environment has a secret"
    world = await ReportedPayment().with_payment(endpoint, webhook_url=own, metadata={"order": 7})
    await world.told()
    (_, event), deliveries = await world.sent()
    assert [(delivery.endpoint_id, delivery.url) for delivery in deliveries] == [(None, own), (None, own)]
    body = json.loads(event.body)
    assert set(body) == {"id", "type", "createdAt", "environment", "sequence", "data"}
    assert (body["id"], body["type"], body["sequence"]) == (event.id, "payment.success", 2)
    assert (body["data"]["status"], body["data"]["metadata"]) == ("SUCCESS", {"order": 7})
    for hidden in (b"webhookUrl", b"businessId", b"biz_1", b"shop.example/own", b"processor"):
        assert hidden not in event.body


@pytest.mark.rule("description.6")
@pytest.mark.parametrize(
    ("first", "report", "told"),
    [
        (Outcome.FAILED, a_report(Outcome.SUCCEEDED), "payment.late_success"),
        (Outcome.SUCCEEDED, a_report(Outcome.REVERSED), "payment.refunded"),
        (Outcome.SUCCEEDED, a_report(Outcome.REVERSED, amounts=frozenset({5000})), "payment.refunded"),
        (Outcome.SUCCEEDED, a_report(Outcome.DISPUTED, amounts=frozenset({5000})), "payment.disputed"),
    ],
)
async def test_the_merchant_is_told_once_of_news_that_moves_nothing(
    world: ReportedPayment, first: Outcome, report: ProviderReport, told: str
) -> None:
    await world.told(first)
    before = await world.payment(REFERENCE)
    after = replace(before, has_adjustments=True)
    for effects in ({ReportEffect.ANOMALY}, {ReportEffect.ANOMALY, ReportEffect.UNCHANGED}):
        settled = await world.services.settlement.report(report, "provider_a", SANDBOX, "event:provider_a")
        assert settled.effect in effects
        assert settled.payment == await world.payment(REFERENCE) == after
    events, deliveries = await world.sent()
    assert ([event.type for event in events[2:]], len(deliveries)) == ([told], 3)
    (anomaly,) = await world.store.transaction.anomalies.of_payment(REFERENCE)
    body = json.loads(events[2].body)
    assert (body["sequence"], anomaly.event_sequence, body["data"]["status"]) == (3, 3, before.status.value)
    assert body["notice"] == {"anomalyId": anomaly.id, "kind": anomaly.kind.value, "amount": max(report.amounts)}


async def test_the_event_of_an_expiry_has_the_adjustments_before_it() -> None:
    world, details = ReportedPayment(), {"reason": "UNDERPAID", "expected": 150_000, "received": 9}
    own: dict[str, Any] = {"business_id": "biz_1", "environment": SANDBOX}
    short = Anomaly("anm_1", REFERENCE, AnomalyKind.MISMATCH, "inbound", details, NOW, 1, **own)
    payment = replace(a_payment(), has_adjustments=True, sequence=1)
    await put(world.store.transaction, payment, an_endpoint(), short)
    world.clock.move(HOUR)
    assert await sweep_expired(world.services.settlement) == 1
    [event], _ = await world.sent()
    assert [one["kind"] for one in json.loads(event.body)["data"]["adjustments"]] == ["ATTENTION"]


@pytest.mark.rule("reports.11")
async def test_an_events_data_has_the_adjustments_as_known_then_its_own_included(world: ReportedPayment) -> None:
    await world.told(Outcome.SUCCEEDED, amounts=frozenset({149000}), facts=ChargeFacts(received=149000))
    await world.told(Outcome.SUCCEEDED, facts=ChargeFacts(fee=2250, received=150000))
    await world.told(Outcome.REVERSED, amounts=frozenset({50000}), details={"refundId": "1"})
    events, _ = await world.sent()
    data = {event.type.removeprefix("payment."): json.loads(event.body)["data"] for event in events}
    kinds = {name: [one["kind"] for one in shown["adjustments"]] for name, shown in data.items()}
    both = ["ATTENTION", "REFUND"]
    assert kinds == {"pending": [], "attention": both[:1], "success": both[:1], "refunded": both}
    attention, refund = data["refunded"]["adjustments"]
    at = data["attention"]["adjustments"][0]["at"]
    underpaid = {"state": "UNDERPAID", "at": at, "expected": 150000, "received": 149000}
    assert attention == {"kind": "ATTENTION", "amount": 149000, **underpaid}
    assert (refund["amount"], refund["state"], set(refund)) == (50000, "processed", {"kind", "amount", "state", "at"})
    assert [(one["fee"], one["netAmount"]) for one in data.values()] == [(None, None)] * 2 + [(2250, 147750)] * 2


@pytest.mark.parametrize("ended", ["FAILED", "REVERSED"])
async def test_the_fee_is_noted_of_a_payment_whose_success_came_after_its_end(ended: str) -> None:
    """Of one that failed, with the event of the late success or, where that did not name it, once a look-up does."""
    for fees in ([2250], [None, 2250]):
        world = await ReportedPayment().with_payment(an_endpoint())
        await world.told(Outcome(ended))
        for fee in fees:
            await world.told(Outcome.SUCCEEDED, facts=ChargeFacts("t1", fee=fee, received=150000))
        payment, (*_, last) = await world.payment(REFERENCE), (await world.sent())[0]
        assert (payment.fee, payment.net_amount) == (2250, 147750)
        is_late, data = ended == "FAILED", json.loads(last.body)["data"]
        assert (last.type, data["fee"]) == (
            ("payment.late_success", fees[0]) if is_late else ("payment.reversed", None)
        )


@pytest.mark.parametrize("is_failed", [False, True])
async def test_the_fee_is_noted_of_a_charge_that_is_first_seen_when_it_is_back(is_failed: bool) -> None:
    world = await ReportedPayment().with_payment(an_endpoint())
    if is_failed:
        await world.told(Outcome.FAILED, facts=ChargeFacts(fee=1, received=150000))
    await world.told(Outcome.REVERSED, facts=ChargeFacts("t1", fee=2250, received=150000))
    payment, [_, *events] = await world.payment(REFERENCE), (await world.sent())[0]
    fees = [json.loads(event.body)["data"]["fee"] for event in events]
    assert (payment.fee, payment.net_amount, fees) == (2250, 147750, [None, 2250, 2250] if is_failed else [2250])


async def test_each_fact_known_before_a_simulated_success_is_told_after_it(world: ReportedPayment) -> None:
    async def refunded(*numbers: int) -> None:
        for number in numbers:
            await world.told(Outcome.REVERSED, amounts=frozenset({10_000}), details={"refundId": f"r{number}"})

    await refunded(1, 2)
    await world.payments.simulate(REFERENCE, "SUCCESS", "biz_1", by=AN_ADMIN)
    await refunded(1, 2, 3)
    events, _ = await world.sent()
    facts = await world.store.transaction.anomalies.of_payment(REFERENCE)
    words = ["pending", "success", "refunded", "refunded", "refunded"]
    assert [(event.sequence, event.type.removeprefix("payment.")) for event in events] == list(enumerate(words, 1))
    assert sorted(fact.event_sequence or 0 for fact in facts) == [3, 4, 5]
    assert (await world.payment(REFERENCE)).has_adjustments


async def test_a_payer_whose_money_came_late_is_not_asked_to_pay_again(world: ReportedPayment) -> None:
    async def text() -> str:
        return " ".join(words.result(await world.checkout.page(REFERENCE))[2:])

    await world.store.transaction.businesses.add(a_business())
    await world.told(Outcome.FAILED)
    assert "start a new payment" in await text()
    for transaction in ("t1", "t2"):
        await world.told(Outcome.SUCCEEDED, facts=ChargeFacts(transaction))
        assert "arrived after" in await text()
        assert "Do not pay again" in await text()
    await world.told(Outcome.REVERSED, details={"refundId": "1"})
    assert "Do not pay again" in await text(), "what was paid twice went back once"
    await world.told(Outcome.REVERSED, details={"refundId": "2"})
    assert "start a new payment" in await text()


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
