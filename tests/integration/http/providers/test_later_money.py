"""What becomes of a payment's money after its first hour: refunds, disputes, money that comes late, twice or short, and
answers of another account; against the fakes."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from payagg_testing.builders import AN_ADMIN
from payagg_testing.memory import MemoryStore

from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.transport import Transport
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.application.schemas.webhooks import EventBody, Notice
from payagg.domain.adjustment import Adjustment, adjustments_of
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import CHECK_AFTER
from payagg.domain.audit import AuditFilter
from payagg.domain.errors import ErrorCode
from payagg.domain.health import Health
from payagg.domain.payment import Payment, Status
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.integration.http.providers.test_inbound import payaza_event
from tests.support.provider_rigs import SECRET_KEYS, SIGNING, credentials_a, launch_parameters
from tests.support.provider_world import AMOUNT, StoreWorld, world_in_memory
from tests.support.refusals import refusal_in

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


async def dispute(world: MoneyWorld, payment: Payment, step: str, status: str = "success", **fields: Any) -> None:
    data = {"id": 77, "resolution": None, "transaction": transaction(payment, status), **fields}
    await event_a(world, f"charge.dispute.{step}", data)


async def paid(world: MoneyWorld, slug: str = "provider_a") -> Payment:
    payment = await world.handed_over(slug)
    await (succeed(world, payment) if slug == "provider_a" else event_b(world, payment))
    assert (await world.read(payment)).status is Status.SUCCESS
    return payment


async def open_popup(world: MoneyWorld, payment: Payment) -> None:
    [attempt] = await world.attempts(payment)
    assert attempt.hand_off is not None
    assert world.fakes.payaza.open(launch_parameters(attempt.hand_off)) is None


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


async def last_notice(world: MoneyWorld, payment: Payment) -> tuple[str, Notice]:
    """The type of the last event, and what it says beside the payment."""
    *_, last = await events(world, payment)
    assert isinstance(last.notice, Notice)
    return last.type, last.notice


async def other_account(world: MoneyWorld) -> int:
    """PATCH credentials of provider_a points at another account; how many open attempts that leaves behind."""
    command = UpdateCredentials(credentials={**credentials_a(world.fakes), "sandboxSecretKey": "sk_test_another"})
    return (await world.services.gateways.set_credentials("gw_provider_a", command, by=AN_ADMIN)).open_attempts


async def test_another_accounts_no_such_reference_never_fails_a_payment(world: MoneyWorld) -> None:
    payment, heard = await world.handed_over(), await world.handed_over()
    assert await other_account(world) == 2
    async with world.store.begin() as tx:
        [entry] = await tx.audit.list_entries(AuditFilter(action="gateway.set_credentials"), None, 10)
    assert entry.changes["credentialsSet"]["after"] == ["sandboxSecretKey"]
    assert entry.changes["sandboxAccount"]["before"] != entry.changes["sandboxAccount"]["after"]
    assert "liveAccount" not in entry.changes
    assert "another" not in json.dumps(dict(entry.changes))
    await succeed(world, heard)  # signed by the secret that was replaced
    assert (await world.read(heard)).status is Status.SUCCESS
    await reconcile(world, CHECK_AFTER[-1] + HOUR)
    assert (await world.read(payment)).status is Status.PENDING
    assert await kinds(world, payment) == [AnomalyKind.NO_EVIDENCE]
    told_last, notice = await last_notice(world, payment)
    assert (told_last, notice.reason) == ("payment.attention", "NO_EVIDENCE")
    assert await other_account(world) == 0  # the same credentials again leave no more behind


@pytest.mark.parametrize("names", [({"id": 1}, {"id": 2}), ({}, {"createdAt": "later"})])
async def test_two_equal_partial_refunds_are_two(world: MoneyWorld, names: tuple[dict[str, Any], ...]) -> None:
    payment = await paid(world)
    for name in names:
        await refund(world, payment, HALF, refund_reference=None, **name)
        await refund(world, payment, HALF, refund_reference=None, **name)
    assert await told(world, payment) == ["pending", "success", "refunded", "refunded"]
    assert sum(one.effect for one in await adjustments(world, payment)) == -AMOUNT


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
    for step in ("create", "remind"):
        await dispute(world, payment, step, due_at="2025-02-01T11:00:00.000+01:00")
    await dispute(world, payment, "resolve", status, resolution=resolution)
    assert await told(world, payment) == ["pending", "success", "disputed", "disputed"]
    opened, resolved = [event.notice for event in await events(world, payment) if event.notice]
    assert (opened.dispute_id, opened.state, opened.due_at) == ("77", "opened", "2025-02-01T10:00:00Z")
    assert (resolved.dispute_id, resolved.state, resolved.amount) == ("77", state, AMOUNT)
    [one] = await adjustments(world, payment)
    assert (one.state, one.effect) == (state, effect)


async def test_a_second_transaction_under_one_reference_is_a_second_charge(world: MoneyWorld) -> None:
    payment = await paid(world, "provider_b")
    await event_b(world, payment, narration="the same again")
    assert await kinds(world, payment) == []
    await event_b(world, payment, transaction_reference="P-C-20250101-2")
    await event_b(world, payment, transaction_reference="P-C-20250101-2", narration="again")
    assert await kinds(world, payment) == [AnomalyKind.SECOND_CHARGE]
    assert await told(world, payment) == ["pending", "success", "late_success"]


async def test_a_success_after_an_attention_goes_on_in_number(world: MoneyWorld) -> None:
    payment = await world.handed_over()
    await succeed(world, payment, amount=AMOUNT - 1)
    await succeed(world, payment, amount=AMOUNT + 1)
    await succeed(world, payment, currency="USD")
    await succeed(world, payment, amount="a lot")
    await succeed(world, payment)
    assert await told(world, payment) == ["pending", *["attention"] * 4, "success"]
    notices = [event.notice for event in await events(world, payment) if event.notice]
    assert [notice.reason for notice in notices] == ["UNDERPAID", "OVERPAID", "CURRENCY_MISMATCH", "AMOUNT_UNKNOWN"]
    assert (notices[0].expected, notices[0].received) == (AMOUNT, AMOUNT - 1)
    assert [notice.amount for notice in notices] == [AMOUNT - 1, AMOUNT + 1, None, None], "dollars are no kobo"
    assert (await world.read(payment)).has_adjustments


@pytest.mark.parametrize("is_told_first", [True, False])
async def test_an_underpayment_that_an_event_and_an_answer_tell_is_one(world: MoneyWorld, is_told_first: bool) -> None:
    payment = await world.handed_over("provider_b")
    world.fakes.payaza.book.alter = {"amount": HALF}
    await open_popup(world, payment)
    world.fakes.payaza.pay(payment.reference)
    verify = world.services.verification.verify
    short: dict[str, Any] = {"amount_received": HALF / 100, "amount_validation": "UNDERPAYMENT"}
    for is_event in (is_told_first, not is_told_first):
        if is_event:
            await event_b(world, payment, **short)
        else:
            assert (await refusal_in(verify(payment.reference))).code is ErrorCode.PAYMENT_AMOUNT_MISMATCH
    assert await told(world, payment) == ["pending", "attention"]
    [one] = await adjustments(world, payment)
    assert (one.received, one.state) == (HALF, "UNDERPAID")


@pytest.mark.parametrize("more", [0, 1])
async def test_what_the_provider_calls_an_underpayment_is_told_as_one(world: MoneyWorld, more: int) -> None:
    """The payer owed a fee on top, and paid less than both."""
    payment = await world.handed_over("provider_b")
    paid_naira = (AMOUNT + more) / 100
    await event_b(world, payment, amount_received=paid_naira, amount_validation="UNDERPAYMENT")
    _, notice = await last_notice(world, payment)
    assert (notice.reason, notice.received) == ("UNDERPAID", AMOUNT + more)


@pytest.mark.parametrize(
    ("facts", "fee", "net"),
    [
        ({"fees": 2_250}, 2_250, AMOUNT - 2_250),
        ({"fees": 2_250, "amount": AMOUNT + 2_250, "requested_amount": AMOUNT}, 2_250, AMOUNT),
        ({"fees": None}, None, None),
        ({"fees": AMOUNT * 2}, None, None),
    ],
)
async def test_the_fee_and_the_net_amount_are_kept_as_they_were_first_known(
    world: MoneyWorld, facts: dict[str, Any], fee: int | None, net: int | None
) -> None:
    payment = await world.handed_over()
    await succeed(world, payment, channel="card", paid_at="2025-01-01T10:00:00.000Z", **facts)
    stored = await world.read(payment)
    assert (stored.status, stored.fee, stored.net_amount) == (Status.SUCCESS, fee, net)
    [attempt] = await world.attempts(payment)
    paid_at = datetime(2025, 1, 1, 10, tzinfo=UTC)
    assert (attempt.provider_id, attempt.channel, attempt.paid_at) == ("5000000001", "card", paid_at)
    await succeed(world, payment, fees=9)
    stored = await world.read(payment)
    assert (stored.fee, stored.net_amount) == ((9, AMOUNT - 9) if fee is None else (fee, net))


async def test_an_address_that_may_not_be_called_says_nothing_of_the_providers_health(
    world: MoneyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credentials were stored by a process that may call itself."""
    monkeypatch.setattr(world.services.payment_options.providers["provider_a"], "_transport", Transport())
    for _ in range(Health.FAULTS_MAX + 1):
        assert (await refusal_in(world.handed_over())).code is ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED
    assert await world.store.transaction.health.all() == []
