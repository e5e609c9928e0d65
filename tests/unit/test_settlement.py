"""Reports from providers, applied by the settlement use case on the memory store."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from payagg.adapters.memory import MemoryStore
from payagg.application import counters
from payagg.application.repositories import AnomalyFilter
from payagg.application.settlement import Settled
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import AttemptState
from payagg.domain.errors import Refusal
from payagg.domain.payment import Payment, Status, Trigger
from payagg.domain.report import Outcome, ProviderReport, ReportEffect
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, WebhookEndpoint
from payagg.testing.clocks import ManualClock, SeededEntropy
from tests.support.assembly import services_over
from tests.support.builders import REFERENCE, a_payment, a_report, an_attempt, an_endpoint

pytestmark = pytest.mark.anyio
SANDBOX, LIVE = Environment.SANDBOX, Environment.LIVE
HOUR = timedelta(hours=1)
LANDS_ON = {Outcome.SUCCEEDED: Status.SUCCESS, Outcome.FAILED: Status.FAILED, Outcome.REVERSED: Status.REVERSED}


class SettlingPayment:
    """One payment handed to provider_a, its business subscribed, and what the settlement made of reports."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), ManualClock()
        self.settlement = services_over(self.store, clock=self.clock, entropy=SeededEntropy()).settlement

    async def with_payment(
        self, *, endpoints: Sequence[WebhookEndpoint] = (), handed: bool = True, **fields: Any
    ) -> "SettlingPayment":
        payment, _ = await self.store.add_payment(a_payment(**fields))
        async with self.store.begin() as tx:
            for endpoint in endpoints:
                await tx.webhooks.add_endpoint(endpoint)
            if handed:
                await tx.payments.add_attempt(an_attempt(payment, 1, AttemptState.HANDED_OFF))
                await self.settlement.write(tx, *payment.hand_over("provider_a", self.clock.now(), "payer"))
        return self

    async def told(
        self,
        outcome: Outcome = Outcome.SUCCEEDED,
        *,
        gateway: str = "provider_a",
        environment: Environment = SANDBOX,
        **report: Any,
    ) -> ReportEffect:
        settled = await self.settlement.report(a_report(outcome, **report), gateway, environment, "inbound")
        return settled.effect

    async def payment(self) -> Payment:
        found = await self.store.find_payment(REFERENCE)
        assert found is not None
        return found

    async def anomalies(self) -> list[AnomalyKind]:
        async with self.store.begin() as tx:
            return [anomaly.kind for anomaly in await tx.anomalies.page(AnomalyFilter(), 1000)]

    async def events(self) -> tuple[list[str], list[Delivery]]:
        async with self.store.begin() as tx:
            events, deliveries = await tx.webhooks.of_payment(REFERENCE)
        return [event.type for event in events], deliveries


@pytest.mark.parametrize("outcome", LANDS_ON)
async def test_a_report_that_agrees_moves_the_payment(outcome: Outcome) -> None:
    world = await SettlingPayment().with_payment()
    assert await world.told(outcome, reason="DECLINED") is ReportEffect.MOVED
    payment = await world.payment()
    assert (payment.status, payment.sequence, payment.settled_at) == (LANDS_ON[outcome], 2, world.clock.now())
    assert payment.failure_reason == ("DECLINED" if outcome is Outcome.FAILED else None)


@pytest.mark.parametrize("outcome", [Outcome.PENDING, Outcome.UNPAID])
async def test_a_report_without_evidence_moves_nothing(outcome: Outcome) -> None:
    world = await SettlingPayment().with_payment()
    assert await world.told(outcome) is ReportEffect.UNCHANGED
    assert (await world.payment()).status is Status.PENDING
    assert await world.anomalies() == []


@pytest.mark.parametrize("outcome", LANDS_ON)
async def test_a_repeated_final_report_changes_nothing_and_tells_nobody_again(outcome: Outcome) -> None:
    world = await SettlingPayment().with_payment()
    await world.told(outcome)
    before, events = await world.payment(), await world.events()
    for _ in range(3):
        world.clock.move(HOUR)
        assert await world.told(outcome) is ReportEffect.UNCHANGED
    assert await world.payment() == before
    assert await world.events() == events
    assert await world.anomalies() == []


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (Outcome.FAILED, Outcome.SUCCEEDED, AnomalyKind.LATE_SUCCESS),
        (Outcome.REVERSED, Outcome.SUCCEEDED, AnomalyKind.LATE_SUCCESS),
        (Outcome.SUCCEEDED, Outcome.FAILED, AnomalyKind.LATE_FAILURE),
        (Outcome.REVERSED, Outcome.FAILED, AnomalyKind.LATE_FAILURE),
        (Outcome.SUCCEEDED, Outcome.REVERSED, AnomalyKind.LATE_REVERSAL),
        (Outcome.FAILED, Outcome.REVERSED, AnomalyKind.LATE_REVERSAL),
    ],
)
async def test_a_different_final_report_is_kept_once_and_moves_nothing(
    first: Outcome, second: Outcome, kind: AnomalyKind
) -> None:
    world = await SettlingPayment().with_payment()
    await world.told(first)
    before = await world.payment()
    for _ in range(3):
        assert await world.told(second) is ReportEffect.ANOMALY
    assert await world.payment() == before
    assert await world.anomalies() == [kind]


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.REVERSED])
@pytest.mark.parametrize(
    ("report", "fact"),
    [
        ({"amounts": frozenset({150001})}, "amount"),
        ({"amounts": frozenset()}, "amount"),
        ({"currency": "USD"}, "currency"),
        ({"environment": LIVE}, "environment"),
    ],
)
async def test_facts_that_differ_are_a_mismatch_kept_once_and_move_nothing(
    outcome: Outcome, report: dict[str, Any], fact: str
) -> None:
    world = await SettlingPayment().with_payment()
    named = {**report, "environment": SANDBOX}
    facts = a_report(outcome, **report)
    for _ in range(2):
        settled = await world.settlement.report(facts, "provider_a", named["environment"], "verify")
        assert settled.effect is ReportEffect.MISMATCH
    assert (await world.payment()).status is Status.PENDING
    async with world.store.begin() as tx:
        (anomaly,) = await tx.anomalies.of_payment(REFERENCE)
    assert (anomaly.kind, anomaly.details["field"]) == (AnomalyKind.MISMATCH, fact)


@pytest.mark.parametrize("outcome", LANDS_ON)
async def test_a_report_from_the_other_environment_moves_nothing(outcome: Outcome) -> None:
    world = await SettlingPayment().with_payment()
    assert await world.told(outcome, environment=LIVE) is ReportEffect.ANOMALY
    assert (await world.payment()).status is Status.PENDING
    assert await world.anomalies() == [AnomalyKind.WRONG_ENVIRONMENT]


@pytest.mark.parametrize("outcome", LANDS_ON)
@pytest.mark.parametrize("stranger", [{"gateway": "provider_b"}, {"provider_reference": f"{REFERENCE}.2"}])
async def test_a_report_from_a_provider_that_holds_no_charge_moves_nothing(
    outcome: Outcome, stranger: dict[str, Any]
) -> None:
    world = await SettlingPayment().with_payment()
    assert await world.told(outcome, **stranger) is ReportEffect.ANOMALY
    assert (await world.payment()).status is Status.PENDING
    assert await world.anomalies() == [AnomalyKind.WRONG_PROVIDER]


@pytest.mark.parametrize("state", [AttemptState.CLAIMED, AttemptState.REFUSED, AttemptState.UNKNOWN])
async def test_a_failure_of_a_charge_nobody_was_sent_to_moves_nothing(state: AttemptState) -> None:
    world = await SettlingPayment().with_payment(handed=False)
    payment = await world.payment()
    async with world.store.begin() as tx:
        await tx.payments.add_attempt(an_attempt(payment, 1, state))
    assert await world.told(Outcome.FAILED) is ReportEffect.UNCHANGED
    assert (await world.payment()).status is Status.INITIATED
    assert await world.told(Outcome.SUCCEEDED) is ReportEffect.MOVED  # money that came is believed all the same


async def test_a_failure_of_a_closed_attempt_leaves_the_payer_at_the_next_one() -> None:
    world = await SettlingPayment().with_payment(handed=False)
    payment = await world.payment()
    async with world.store.begin() as tx:
        await tx.payments.add_attempt(an_attempt(payment, 1, AttemptState.REFUSED))
        await tx.payments.add_attempt(an_attempt(payment, 2, AttemptState.HANDED_OFF))
        await world.settlement.write(tx, *payment.hand_over("provider_a", world.clock.now(), "payer"))
    assert await world.told(Outcome.FAILED) is ReportEffect.UNCHANGED
    assert (await world.payment()).status is Status.PENDING
    assert await world.told(Outcome.FAILED, provider_reference=f"{REFERENCE}.2") is ReportEffect.MOVED


@pytest.mark.parametrize("facts", [{"amounts": frozenset({149999})}, {"currency": "USD"}])
async def test_a_failure_of_another_amount_or_currency_moves_nothing(facts: dict[str, Any]) -> None:
    world = await SettlingPayment().with_payment()
    assert await world.told(Outcome.FAILED, **facts) is ReportEffect.MISMATCH
    assert (await world.payment()).status is Status.PENDING
    assert await world.anomalies() == [AnomalyKind.MISMATCH]


async def test_a_failure_need_not_name_an_amount() -> None:
    world = await SettlingPayment().with_payment()
    assert await world.told(Outcome.FAILED, amounts=frozenset(), currency="") is ReportEffect.MOVED


async def test_each_kept_fact_is_counted() -> None:
    counters.counts.clear()
    world = await SettlingPayment().with_payment()
    for _ in range(2):
        await world.told(currency="USD")
    assert counters.counts["anomalies", "MISMATCH"] == 1


async def test_a_payment_nobody_processed_is_moved_by_no_provider() -> None:
    world = await SettlingPayment().with_payment(handed=False)
    assert await world.told() is ReportEffect.ANOMALY
    assert (await world.payment()).status is Status.INITIATED


async def test_money_for_a_payment_that_expired_before_any_charge_is_never_lost() -> None:
    world = await SettlingPayment().with_payment(handed=False)
    world.clock.move(HOUR)
    assert await world.settlement.expire_due() == 1
    assert await world.told() is ReportEffect.ANOMALY
    payment = await world.payment()
    assert (payment.status, payment.failure_reason) == (Status.FAILED, "EXPIRED")
    assert len(await world.anomalies()) == 1


async def test_money_for_an_unknown_reference_is_never_lost() -> None:
    world = SettlingPayment()
    assert await world.told() is ReportEffect.UNKNOWN_PAYMENT
    assert await world.told(Outcome.PENDING) is ReportEffect.UNKNOWN_PAYMENT
    assert await world.anomalies() == [AnomalyKind.UNKNOWN_REFERENCE]


async def test_a_pending_payment_succeeds_long_after_its_window() -> None:
    world = await SettlingPayment().with_payment()
    world.clock.move(72 * HOUR)
    assert await world.told() is ReportEffect.MOVED
    assert (await world.payment()).status is Status.SUCCESS


async def test_a_late_success_for_an_expired_payment_finds_it_failed_even_before_the_sweep() -> None:
    world = await SettlingPayment().with_payment(handed=False)
    async with world.store.begin() as tx:
        await tx.payments.add_attempt(an_attempt(await tx.payments.get(REFERENCE), 1, AttemptState.UNKNOWN))
    world.clock.move(HOUR)
    assert await world.told() is ReportEffect.ANOMALY
    payment = await world.payment()
    assert (payment.status, payment.failure_reason) == (Status.FAILED, "EXPIRED")
    assert await world.anomalies() == [AnomalyKind.LATE_SUCCESS]
    assert (await world.events())[0] == ["payment.failed", "payment.late_success"]


async def test_a_second_paid_charge_of_one_payment_is_told_from_a_repeat() -> None:
    world = await SettlingPayment().with_payment(handed=False)
    payment = await world.payment()
    async with world.store.begin() as tx:
        await tx.payments.add_attempt(an_attempt(payment, 1, AttemptState.REFUSED))
        await tx.payments.add_attempt(an_attempt(payment, 2, AttemptState.HANDED_OFF))
        await world.settlement.write(tx, *payment.hand_over("provider_a", world.clock.now(), "payer"))
    assert await world.told(provider_reference=f"{REFERENCE}.2") is ReportEffect.MOVED
    assert await world.told(provider_reference=f"{REFERENCE}.2") is ReportEffect.UNCHANGED
    assert await world.told() is ReportEffect.ANOMALY
    assert await world.anomalies() == [AnomalyKind.SECOND_CHARGE]


async def test_the_sweep_fails_what_expired_once_and_leaves_pending_payments_alone() -> None:
    world = await SettlingPayment().with_payment(handed=False)
    await world.store.add_payment(a_payment(reference="PAY-20250131-LATER0", now=world.clock.now() + HOUR))
    world.clock.move(HOUR)
    assert await world.settlement.expire_due() == 1
    assert await world.settlement.expire_due() == 0
    payment = await world.payment()
    assert (payment.status, payment.failure_reason, payment.settled_at) == (
        Status.FAILED,
        "EXPIRED",
        payment.expires_at,
    )
    pending = await SettlingPayment().with_payment()
    pending.clock.move(100 * HOUR)
    assert await pending.settlement.expire_due() == 0


async def test_each_transition_has_one_event_in_sequence_and_a_delivery_per_subscriber() -> None:
    endpoints = [
        an_endpoint("whe_all"),
        an_endpoint("whe_success", events=("payment.success",)),
        an_endpoint("whe_failed", events=("payment.failed",)),
        an_endpoint("whe_off", is_active=False),
        an_endpoint("whe_live", LIVE),
        an_endpoint("whe_other", business_id="biz_2"),
    ]
    world = await SettlingPayment().with_payment(endpoints=endpoints)
    await world.told()
    types, deliveries = await world.events()
    assert types == ["payment.pending", "payment.success"]
    sent = {(delivery.sequence, delivery.endpoint_id) for delivery in deliveries}
    assert sent == {(1, "whe_all"), (2, "whe_all"), (2, "whe_success")}


async def test_the_payments_own_address_is_told_when_somebodys_secret_can_sign() -> None:
    own = "https://shop.example/own"
    world = await SettlingPayment().with_payment(webhook_url=own, endpoints=[an_endpoint(events=("payment.failed",))])
    await world.told()
    _, deliveries = await world.events()
    assert [(delivery.endpoint_id, delivery.url) for delivery in deliveries] == [(None, own), (None, own)]
    unsigned = await SettlingPayment().with_payment(webhook_url=own)
    await unsigned.told()
    assert (await unsigned.events())[1] == []


async def test_an_events_body_is_the_merchants_view_and_no_more() -> None:
    world = await SettlingPayment().with_payment(webhook_url="https://shop.example/own", metadata={"order": 7})
    await world.told()
    async with world.store.begin() as tx:
        (_, event), _ = await tx.webhooks.of_payment(REFERENCE)
    body = json.loads(event.body)
    assert set(body) == {"id", "type", "createdAt", "environment", "sequence", "data"}
    assert (body["id"], body["type"], body["sequence"]) == (event.id, "payment.success", 2)
    assert (body["data"]["status"], body["data"]["metadata"]) == ("SUCCESS", {"order": 7})
    for hidden in (b"webhookUrl", b"businessId", b"biz_1", b"shop.example/own", b"processor"):
        assert hidden not in event.body


async def test_a_refused_move_rolls_back_everything_in_its_transaction() -> None:
    world = await SettlingPayment().with_payment()
    await world.told()
    before, events = await world.payment(), await world.events()
    with pytest.raises(Refusal):  # noqa: PT012 - the block is what is tested
        async with world.store.begin() as tx:
            await tx.payments.save_attempt(replace(an_attempt(before), state=AttemptState.REFUSED), "token 1")
            await world.settlement.move(tx, before, Trigger.FAIL, actor="test")
    assert await world.payment() == before
    assert await world.events() == events
    async with world.store.begin() as tx:
        assert [attempt.state for attempt in await tx.payments.attempts(REFERENCE)] == [AttemptState.HANDED_OFF]


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
    first: Outcome, report: ProviderReport, told: str
) -> None:
    world = await SettlingPayment().with_payment(endpoints=[an_endpoint()])
    await world.told(first)
    before = await world.payment()
    for _ in range(2):
        settled = await world.settlement.report(report, "provider_a", SANDBOX, "event:provider_a")
        assert settled == Settled(ReportEffect.ANOMALY, before)
    assert await world.payment() == before
    types, deliveries = await world.events()
    assert types[2:] == [told]
    assert len(deliveries) == 3
    async with world.store.begin() as tx:
        events, _ = await tx.webhooks.of_payment(REFERENCE)
        (anomaly,) = await tx.anomalies.of_payment(REFERENCE)
    body = json.loads(events[2].body)
    assert (body["sequence"], body["data"]["status"]) == (3, before.status.value)
    assert body["notice"] == {"anomalyId": anomaly.id, "kind": anomaly.kind.value, "amount": max(report.amounts)}
    assert anomaly.event_sequence == 3


async def test_notices_are_numbered_on_and_go_to_their_subscribers_alone() -> None:
    endpoints = [an_endpoint("whe_disputes", events=("payment.disputed",)), an_endpoint("whe_all")]
    world = await SettlingPayment().with_payment(endpoints=endpoints)
    await world.told()
    for outcome in (Outcome.DISPUTED, Outcome.REVERSED):
        await world.told(outcome)
    types, deliveries = await world.events()
    assert types == ["payment.pending", "payment.success", "payment.disputed", "payment.refunded"]
    assert [d.sequence for d in deliveries if d.endpoint_id == "whe_disputes"] == [3]
    assert sorted(d.sequence for d in deliveries if d.endpoint_id == "whe_all") == [1, 2, 3, 4]


@pytest.mark.parametrize("outcome", [Outcome.REVERSED, Outcome.DISPUTED])
async def test_a_merchant_who_was_never_told_of_a_success_hears_of_no_refund_or_dispute(outcome: Outcome) -> None:
    world = await SettlingPayment().with_payment()
    await world.told(Outcome.FAILED)
    await world.told(outcome)
    assert (await world.events())[0] == ["payment.pending", "payment.failed"]


async def test_without_a_transition_nothing_is_written() -> None:
    world = await SettlingPayment().with_payment()
    payment, (events, _) = await world.payment(), await world.events()
    again, transition = payment.hand_over("provider_b", world.clock.now(), "payer")
    assert transition is None
    async with world.store.begin() as tx:
        assert await world.settlement.write(tx, again, transition) == payment
    assert (await world.payment(), (await world.events())[0]) == (payment, events)
