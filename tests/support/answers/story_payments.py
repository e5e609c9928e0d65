"""The payer's and the providers' part of the story: payments that succeed, fail, are reversed, refunded, disputed."""

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from tests.support.answers.story_merchant import Selling
from tests.support.http_world import a_token, bearer
from tests.support.provider_rigs import SIGNING

if TYPE_CHECKING:
    from tests.support.answers.story import Storyteller

ORDER = {
    "amount": 150000,
    "customerEmail": "ada@example.com",
    "customerName": "Ada Obi",
    "callbackUrl": "https://shop.example/thanks",
    "metadata": {"orderId": "1001"},
    "idempotencyKey": "order-1001",
}
SUCCESS, NO_FUNDS, REVERSED = "4242 4242 4242 4242", "4000 0000 0000 9995", "4000 0000 0000 0259"


async def pay(told: "Storyteller", shop: Selling) -> None:
    await _with_the_simulator(told, shop)
    await _with_provider_a(told, shop)
    await _with_provider_b(told, shop)
    await _from_the_dashboard(told, shop)
    await _refused(told, shop)


async def _initiated(told: "Storyteller", shop: Selling, number: int, **more: Any) -> str:
    body = {"amount": 150000, "idempotencyKey": f"order-{number}", **more}
    made = await told.call("initiatePayment", "/payments/initiate", json=body)
    return str(made["reference"])


async def _with_the_simulator(told: "Storyteller", shop: Selling) -> None:
    await told.call("getPaymentContext", "/payments/context")
    reference = await _initiated(told, shop, 1001, **ORDER)
    await told.call("initiatePayment", "/payments/initiate", 200, json=ORDER)
    public = f"/public/payments/{reference}"
    await told.call("getPublicPayment", public)
    await told.call("listPaymentOptions", f"{public}/gateways")
    card = {"gatewaySlug": "sandbox", "cardNumber": SUCCESS}
    await told.call("processPayment", f"{public}/process", json=card)
    await told.call("verifyPayment", f"{public}/verify")
    await told.call("getPayment", f"/payments/{reference}")
    await told.refused("PAYMENT_ALREADY_PROCESSED", "POST", f"{public}/process", json=card)
    simulate = f"/payments/{reference}/simulate"
    await told.refused("PAYMENT_ALREADY_FINAL", "POST", simulate, json={"outcome": "FAILED"})
    await told.refused("SANDBOX_ONLY", "POST", simulate, json={"outcome": "FAILED"}, headers=shop.live)
    await told.refused("DUPLICATE_PAYMENT", "POST", "/payments/initiate", json=ORDER)
    for number, card_number in ((1002, NO_FUNDS), (1003, REVERSED)):
        other = f"/public/payments/{await _initiated(told, shop, number)}"
        card = {"gatewaySlug": "sandbox", "cardNumber": card_number}
        await told.call("processPayment", f"{other}/process", json=card)
        await told.call("verifyPayment", f"{other}/verify")
    simulated = await _initiated(told, shop, 1004, webhookUrl="https://shop.example/orders/1004")
    outcome = {"outcome": "SUCCESS"}
    await told.call("simulatePayment", f"/payments/{simulated}/simulate", json=outcome)
    await told.passes(seconds=5)
    log = f"{shop.path}/payments/{simulated}/deliveries"
    [sent] = await told.call("listPaymentDeliveries", log)
    await told.call("redeliverToPayment", f"{log}/{sent['id']}/redeliver")
    await told.passes(seconds=5)


async def _with_provider_a(told: "Storyteller", shop: Selling) -> None:
    """Paid, refunded in part, then disputed; another is paid after its hour, a third too little."""
    fake, events = told.fakes.paystack, "/webhooks/provider_a/sandbox"

    async def receive(outgoing: Any) -> None:
        headers = {**outgoing.headers}
        await told.call("receiveProviderASandboxEvent", events, content=outgoing.body, headers=headers)
        await told.passes(seconds=5)

    async def handed_over(number: int) -> str:
        reference = await _initiated(told, shop, number)
        choice = {"gatewaySlug": "provider_a"}
        await told.call("processPayment", f"/public/payments/{reference}/process", json=choice)
        return reference

    reference = await handed_over(1005)
    fake.pay(reference, fees=2250)
    await receive(fake.book.waiting[-1])
    fake.refund(reference, 50000)
    await receive(fake.book.waiting[-1])
    charge = fake.book.charges[reference]
    dispute = {"id": 358, "status": "awaiting-merchant-feedback", "transaction": fake.transaction(charge)}
    await receive(fake._sign("charge.dispute.create", dispute, charge))
    late = await handed_over(1006)
    fake.decline(late)
    await told.passes(minutes=61)
    await told.call("verifyPayment", f"/public/payments/{late}/verify")
    await told.passes(seconds=5)
    fake.pay(late)
    await receive(fake.book.waiting[-1])
    await _ended_by_hand(told, shop, await handed_over(1010))
    altered = await handed_over(1007)
    fake.pay(altered)
    fake.book.alter = {"amount": 149999}
    await told.refused("PAYMENT_AMOUNT_MISMATCH", "GET", f"/public/payments/{altered}/verify")
    fake.book.alter = {}
    short = await handed_over(1011)
    charge = fake.book.charges[short]
    too_little = {"status": "success", "amount": 149000, "requested_amount": 149000}
    await receive(fake._sign("charge.success", {**fake.transaction(charge), **too_little}, charge))
    for id, path in (
        ("receiveProviderALiveEvent", "/webhooks/provider_a/live"),
        ("receiveProviderAEvent", "/webhooks/provider_a"),
    ):
        body = json.dumps({"event": "transfer.success", "data": {}}).encode()
        headers = {"x-provider_a-signature": fake.signature(body, "sk_live_canary")}
        await told.call(id, path, content=body, headers=headers)
        told.operations[id]["request"] = told.operations["receiveProviderASandboxEvent"]["request"]
    await told.refused("INVALID_WEBHOOK_SIGNATURE", "POST", events, content=b"{}", headers={})


async def _ended_by_hand(told: "Storyteller", shop: Selling, reference: str) -> None:
    """The payer paid too little; nobody but administrators will end that payment."""
    as_another: dict[str, Any] = {"headers": bearer(a_token("admin-2", type="admin", role="ADMIN"))}
    resolve = f"/admin/payments/{reference}/resolve"
    ending = {
        "outcome": "FAILED",
        "reason": "The payer paid too little.",
        "evidence": "The provider gave it back, case 4711.",
    }
    await told.refused("RESOLUTION_NOT_ALLOWED", "POST", resolve, json=ending)
    told.fakes.paystack.pay(reference)
    told.fakes.paystack.book.alter = {"amount": 149999}
    await told.refused("PAYMENT_AMOUNT_MISMATCH", "GET", f"/public/payments/{reference}/verify")
    told.fakes.paystack.book.alter = {}
    await told.passes(minutes=61)
    await told.refused("RESOLUTION_NOT_REQUESTED", "POST", f"{resolve}/confirm", **as_another)
    await told.call("requestResolution", resolve, json=ending)
    await told.refused("RESOLUTION_ALREADY_REQUESTED", "POST", resolve, json=ending, **as_another)
    await told.refused("SECOND_ADMINISTRATOR_REQUIRED", "POST", f"{resolve}/confirm")
    await told.call("confirmResolution", f"{resolve}/confirm", **as_another)
    await told.call("getPaymentStory", f"/admin/payments/{reference}/story")


async def _with_provider_b(told: "Storyteller", shop: Selling) -> None:
    event = {
        "merchant_reference": "PAY-20250131-7K2M9X",
        "transaction_reference": "P-C-20250131-AAAAAAAAAA",
        "transaction_status": "Funds Received",
        "amount_received": 1500.00,
        "currency_code": "NGN",
        "channel": "Card",
    }
    body = json.dumps(event).encode()
    for id, path, mode in (
        ("receiveProviderBSandboxEvent", "/webhooks/provider_b/sandbox", "test"),
        ("receiveProviderBLiveEvent", "/webhooks/provider_b/live", "live"),
        ("receiveProviderBEvent", "/webhooks/provider_b", "live"),
    ):
        digest = hmac.new(SIGNING[mode].encode(), body, hashlib.sha512).digest()
        headers = {"x-provider_b-signature": base64.b64encode(digest).decode()}
        await told.call(id, path, content=body, headers=headers)


async def _from_the_dashboard(told: "Storyteller", shop: Selling) -> None:
    tests = f"{shop.path}/test-payment"
    body = {"amount": 150000, "idempotencyKey": "try-1"}
    made = await told.call("createTestPayment", tests, json=body)
    await told.call("createTestPayment", tests, 200, json=body)
    one = f"{tests}/{made['reference']}"
    await told.call("simulateTestPayment", f"{one}/simulate", json={"outcome": "SUCCESS"})
    await told.call("getTestPayment", one)


async def _refused(told: "Storyteller", shop: Selling) -> None:
    """What a merchant's first tries meet."""
    initiate = "/payments/initiate"
    await told.refused("INVALID_API_KEY", "GET", "/payments/context", headers={"Authorization": "Bearer ssk_sand_1"})
    await told.refused("VALIDATION_ERROR", "POST", initiate, json={"amount": 99})
    await told.refused("GATEWAY_NOT_FOUND", "POST", initiate, json={"amount": 150000, "gateway": "cash"})
    off = {"amount": 150000, "gateway": "provider_b"}
    await told.refused("GATEWAY_DISABLED", "POST", initiate, json=off)
    await told.refused("INVALID_REFERENCE", "GET", "/payments/PAY-1")
    await told.refused("PAYMENT_NOT_FOUND", "GET", "/payments/PAY-20250131-000000")
    reference = await _initiated(told, shop, 1008)
    process = f"/public/payments/{reference}/process"
    await told.refused("GATEWAY_NOT_AVAILABLE", "POST", process, json={"gatewaySlug": "provider_b"})
    await told.passes(minutes=61)
    card = {"gatewaySlug": "sandbox", "cardNumber": SUCCESS}
    await told.refused("PAYMENT_EXPIRED", "POST", process, json=card)
