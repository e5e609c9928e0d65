"""What becomes of a payment's money after its first hour: refunds, disputes, money that comes late, twice or short, and
answers of another account; against the fakes."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from payagg_testing.builders import AN_ADMIN

from payagg.adapters.memory import MemoryStore
from payagg.adapters.providers import PROVIDERS
from payagg.application.schemas.events import EventBody
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.domain.adjustment import Adjustment, adjustments_of
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import CHECK_AFTER, CHECK_PAID_AFTER
from payagg.domain.audit import AuditFilter
from payagg.domain.payment import Payment, Status
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.integration.http.providers.test_inbound import payaza_event
from tests.support.provider_rigs import SECRET_KEYS, SIGNING, credentials_a
from tests.support.provider_world import AMOUNT, StoreWorld, world_in_memory

ROUTES = [route for spec in PROVIDERS for route in spec.routes]
ROUTE_A, ROUTE_B = ROUTES[0], ROUTES[3]
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
HALF = AMOUNT // 2
MoneyWorld = StoreWorld[MemoryStore]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[MoneyWorld]:
    async with world_in_memory(tmp_path) as world:
        for fake in (world.fakes.paystack, world.fakes.payaza):
            fake.book.webhooks = WebhookMode.NEVER
        yield world


# --- the world's moves -----------------------------------------------------------------------------------------------


async def event_a(world: MoneyWorld, name: str, data: dict[str, Any]) -> None:
    body = json.dumps({"event": name, "data": data}).encode()
    world.clock.move(SECOND)
    headers = {"x-provider_a-signature": world.fakes.paystack.signature(body, SECRET_KEYS["test"])}
    await world.services.provider_events.receive(ROUTE_A, body, headers)


async def event_b(world: MoneyWorld, payment: Payment, status: str = "Completed", **fields: Any) -> None:
    content = json.dumps(payaza_event(payment, status, **fields)).encode()
    headers = {"x-provider_b-signature": world.fakes.payaza.signature(content, SIGNING["test"])}
    await world.services.provider_events.receive(ROUTE_B, content, headers)


def transaction(payment: Payment, status: str = "success", **fields: Any) -> dict[str, Any]:
    facts = {"id": 5_000_000_001, "domain": "test", "status": status, "reference": payment.reference}
    return {**facts, "amount": payment.amount, "currency": "NGN", **fields}


async def succeed(world: MoneyWorld, payment: Payment, **fields: Any) -> None:
    await event_a(world, "charge.success", transaction(payment, **fields))


async def refund(world: MoneyWorld, payment: Payment, amount: int, **fields: Any) -> None:
    data = {"status": "processed", "transaction_reference": payment.reference, "amount": amount}
    await event_a(world, "refund.processed", {**data, "currency": "NGN", "domain": "test", **fields})


async def dispute(
    world: MoneyWorld, payment: Payment, step: str = "create", status: str = "success", **fields: Any
) -> None:
    data = {"id": 77, "resolution": None, "transaction": transaction(payment, status), **fields}
    await event_a(world, f"charge.dispute.{step}", data)


async def paid(world: MoneyWorld, slug: str = "provider_a") -> Payment:
    payment = await world.handed_over(slug)
    await (succeed(world, payment) if slug == "provider_a" else event_b(world, payment))
    assert (await world.read(payment)).status is Status.SUCCESS
    return payment


async def reconcile(world: MoneyWorld, span: timedelta) -> None:
    """Moves the clock on by `span`, the reconciler at work meanwhile."""
    until = world.clock.now() + span
    while (now := world.clock.now()) < until:
        world.clock.move(min(HOUR if span < 10 * DAY else 12 * HOUR, until - now))
        await world.services.reconciler.run_once()


async def events(world: MoneyWorld, payment: Payment) -> list[EventBody]:
    """Each event of the payment as its merchant gets it, in the order of their numbers, which have no gap."""
    async with world.store.begin() as tx:
        found, _ = await tx.webhook_events.of_payment(payment.reference)
    found.sort(key=lambda event: event.sequence)
    assert [event.sequence for event in found] == list(range(1, len(found) + 1))
    return [msgspec.json.decode(event.body, type=EventBody) for event in found]


async def told(world: MoneyWorld, payment: Payment) -> list[str]:
    return [event.type.removeprefix("payment.") for event in await events(world, payment)]


async def kinds(world: MoneyWorld, payment: Payment) -> list[AnomalyKind]:
    return [anomaly.kind for anomaly in reversed(await world.anomalies(payment))]


async def adjustments(world: MoneyWorld, payment: Payment) -> list[Adjustment]:
    return adjustments_of(await world.anomalies(payment), payment.amount)


async def other_account(world: MoneyWorld, **changes: str) -> int:
    """PATCH credentials of provider_a points at another account; how many open attempts that leaves behind."""
    credentials = {**credentials_a(world.fakes), "sandboxSecretKey": "sk_test_another", **changes}
    command = UpdateCredentials(credentials=credentials)
    return (await world.services.gateways.set_credentials("gw_provider_a", command, by=AN_ADMIN)).open_attempts


# --- 1: another account answers --------------------------------------------------------------------------------------


async def test_another_accounts_no_such_reference_never_fails_a_payment(world: MoneyWorld) -> None:
    payment, heard = await world.handed_over(), await world.handed_over()
    assert await other_account(world) == 2
    await succeed(world, heard)  # signed by the secret that was replaced
    assert (await world.read(heard)).status is Status.SUCCESS
    await reconcile(world, CHECK_AFTER[-1] + HOUR)
    assert (await world.read(payment)).status is Status.PENDING
    assert await kinds(world, payment) == [AnomalyKind.NO_EVIDENCE]
    *_, last = await events(world, payment)
    assert (last.type, last.notice.reason) == ("payment.attention", "NO_EVIDENCE")  # type: ignore[union-attr]
    assert await other_account(world) == 0  # the same credentials again leave no more behind


async def test_not_found_is_no_proof_where_the_provider_gave_a_page(world: MoneyWorld) -> None:
    payment, popup = await world.handed_over(), await world.handed_over("provider_b")
    del world.fakes.paystack.book.charges[payment.reference]
    await reconcile(world, CHECK_AFTER[-1] + HOUR)
    assert (await world.read(payment)).status is Status.PENDING
    assert (await world.read(popup)).status is Status.FAILED  # which was never opened


# --- 2: words that nobody knows --------------------------------------------------------------------------------------


async def test_an_unknown_word_about_a_final_payment_is_an_anomaly(world: MoneyWorld) -> None:
    payment, pending = await paid(world, "provider_b"), await world.handed_over("provider_b")
    for word in ("Processing", "Cancelled"):
        await event_b(world, payment, word)
    await event_b(world, pending, "Wondering")
    assert await kinds(world, payment) == await kinds(world, pending) == []
    for narration in ("once", "again"):
        await event_b(world, payment, "Refunded", narration=narration)
    assert await kinds(world, payment) == [AnomalyKind.UNKNOWN_STATUS]
    assert (await world.read(payment)).status is Status.SUCCESS


# --- 3: the one event that is lost -----------------------------------------------------------------------------------


async def test_a_refund_whose_event_is_lost_is_found_within_a_day(world: MoneyWorld) -> None:
    payment = await paid(world)
    world.fakes.paystack.book.charges[payment.reference].status = "reversed"
    await reconcile(world, CHECK_PAID_AFTER[0] + HOUR)
    assert await told(world, payment) == ["pending", "success", "refunded"]
    assert [(one.kind.value, one.amount) for one in await adjustments(world, payment)] == [("REFUND", AMOUNT)]


# --- 4: two refunds that look alike ----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [({"id": 1}, {"id": 2}), ({}, {"createdAt": "later"})])
async def test_two_equal_partial_refunds_are_two(world: MoneyWorld, names: tuple[dict[str, Any], ...]) -> None:
    payment = await paid(world)
    for name in names:
        await refund(world, payment, HALF, refund_reference=None, **name)
        await refund(world, payment, HALF, refund_reference=None, **name)
    assert await told(world, payment) == ["pending", "success", "refunded", "refunded"]
    assert sum(one.effect for one in await adjustments(world, payment)) == -AMOUNT


# --- 5: facts before their time and after a failure ------------------------------------------------------------------


async def test_facts_before_the_success_are_told_in_order_once_it_is_there(world: MoneyWorld) -> None:
    payment = await world.handed_over()
    await refund(world, payment, HALF, id=1)
    await dispute(world, payment)
    await refund(world, payment, HALF, id=1, again=True)
    assert await told(world, payment) == ["pending"]
    await succeed(world, payment)
    await succeed(world, payment, again=True)
    assert await told(world, payment) == ["pending", "success", "refunded", "disputed"]


# --- 6: disputes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolution", "status", "state", "effect"),
    [
        ("declined", "success", "won", 0),
        ("merchant-accepted", "success", "accepted", -AMOUNT),
        (None, "reversed", "lost", -AMOUNT),
        ("merchant-accepted", "reversed", "accepted", -AMOUNT),
    ],
)
async def test_a_dispute_says_its_id_its_state_and_its_date(
    world: MoneyWorld, resolution: str | None, status: str, state: str, effect: int
) -> None:
    payment = await paid(world)
    due = "2025-02-01T10:00:00+00:00"
    await dispute(world, payment, due_at=due)
    await dispute(world, payment, "remind", due_at=due)
    await dispute(world, payment, "resolve", status, resolution=resolution)
    *_, first, last = await events(world, payment)
    assert await told(world, payment) == ["pending", "success", "disputed", "disputed"]
    assert (first.notice.dispute_id, first.notice.state, first.notice.due_at) == ("77", "opened", due)  # type: ignore[union-attr]
    assert (last.notice.dispute_id, last.notice.state, last.notice.amount) == ("77", state, AMOUNT)  # type: ignore[union-attr]
    [one] = await adjustments(world, payment)
    assert (one.state, one.effect) == (state, effect)


# --- 7: two transactions under one reference -------------------------------------------------------------------------


async def test_a_second_transaction_under_one_reference_is_a_second_charge(world: MoneyWorld) -> None:
    payment = await paid(world, "provider_b")
    await event_b(world, payment, narration="the same again")
    assert await kinds(world, payment) == []
    await event_b(world, payment, transaction_reference="P-C-20250101-2")
    await event_b(world, payment, transaction_reference="P-C-20250101-2", narration="again")
    assert await kinds(world, payment) == [AnomalyKind.SECOND_CHARGE]
    assert await told(world, payment) == ["pending", "success", "late_success"]


# --- 8: the audit of credentials -------------------------------------------------------------------------------------


async def test_the_audit_names_what_changed_and_that_the_account_is_another(world: MoneyWorld) -> None:
    await other_account(world)
    async with world.store.begin() as tx:
        [entry] = await tx.audit.list_entries(AuditFilter(action="gateway.set_credentials"), None, 10)
    assert entry.changes["credentialsSet"]["after"] == ["sandboxSecretKey"]
    account = entry.changes["sandboxAccount"]
    assert account["before"] != account["after"]
    assert "liveAccount" not in entry.changes
    assert "another" not in json.dumps(dict(entry.changes))


# --- 9: money that does not fit -------------------------------------------------------------------------------------


async def test_a_success_after_an_attention_goes_on_in_number(world: MoneyWorld) -> None:
    payment = await world.handed_over()
    await succeed(world, payment, amount=AMOUNT - 1)
    await succeed(world, payment, amount=AMOUNT + 1)
    await succeed(world, payment, currency="USD")
    await succeed(world, payment)
    assert await told(world, payment) == ["pending", "attention", "attention", "attention", "success"]
    notices = [event.notice for event in await events(world, payment) if event.notice]
    assert [notice.reason for notice in notices] == ["UNDERPAID", "OVERPAID", "CURRENCY_MISMATCH"]
    assert (notices[0].expected, notices[0].received) == (AMOUNT, AMOUNT - 1)
    assert (await world.read(payment)).has_adjustments


# --- what the provider keeps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "fee", "net"),
    [
        ({"fees": 2_250}, 2_250, AMOUNT - 2_250),
        ({"fees": 2_250, "amount": AMOUNT + 2_250, "requested_amount": AMOUNT}, 2_250, AMOUNT),
        ({"fees": None}, None, None),
        ({"fees": AMOUNT * 2}, None, None),
    ],
)
async def test_the_fee_and_the_net_amount_are_kept(
    world: MoneyWorld, facts: dict[str, Any], fee: int | None, net: int | None
) -> None:
    payment = await world.handed_over()
    await succeed(world, payment, channel="card", paid_at="2025-01-01T10:00:00.000Z", **facts)
    stored = await world.read(payment)
    assert (stored.status, stored.fee, stored.net_amount) == (Status.SUCCESS, fee, net)
    [attempt] = await world.attempts(payment)
    assert (attempt.provider_id, attempt.channel) == ("5000000001", "card")
    assert attempt.paid_at is not None
    assert attempt.paid_at.isoformat() == "2025-01-01T10:00:00+00:00"


async def test_a_fee_that_comes_to_be_known_later_is_added(world: MoneyWorld) -> None:
    payment = await paid(world)
    await succeed(world, payment, fees=2_250)
    stored = await world.read(payment)
    assert (stored.fee, stored.net_amount) == (2_250, AMOUNT - 2_250)
    await succeed(world, payment, fees=9)
    assert (await world.read(payment)).fee == 2_250


async def test_the_amount_of_a_late_success_is_without_the_payers_fee(world: MoneyWorld) -> None:
    payment = await world.handed_over("provider_b")
    await reconcile(world, CHECK_AFTER[-1] + HOUR)
    more = f"{(AMOUNT + 2_000) / 100:.2f}"
    await event_b(world, payment, amount_received=more, request_amount=None, transaction_fee="20.00")
    *_, last = await events(world, payment)
    assert (last.type, last.notice.amount) == ("payment.late_success", AMOUNT)  # type: ignore[union-attr]
