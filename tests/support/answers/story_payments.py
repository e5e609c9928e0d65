"""The payer's and the providers' part of the story: payments that succeed, fail, are reversed, refunded, disputed."""

import base64
import hashlib
import hmac
import json
from typing import Any

from tests.support.answers.storyteller import Storyteller
from tests.support.http_world import a_token, bearer
from tests.support.provider_rigs import SIGNING

ORDER = {
    "amount": 150000,
    "customerEmail": "ada@example.com",
    "customerName": "Ada Obi",
    "callbackUrl": "https://shop.example/thanks",
    "metadata": {"orderId": "1001"},
    "idempotencyKey": "order-1001",
}
SUCCESS, NO_FUNDS, REVERSED = (
    {"gatewaySlug": "sandbox", "cardNumber": number}
    for number in ("4242 4242 4242 4242", "4000 0000 0000 9995", "4000 0000 0000 0259")
)


async def pay(told: Storyteller) -> None:
    for part in (_with_the_simulator, _with_provider_a, _with_provider_b, _from_the_dashboard, _refused):
        await part(told)


async def _initiated(told: Storyteller, number: int, **more: Any) -> str:
    body = {"amount": 150000, "idempotencyKey": f"order-{number}", **more}
    return str((await told.call("initiatePayment", json=body))["reference"])


async def _with_the_simulator(told: Storyteller) -> None:
    await told.call("getPaymentContext")
    reference = await _initiated(told, 1001, **ORDER)
    await told.call("initiatePayment", status=200, json=ORDER)
    await told.call("getPublicPayment", reference)
    await told.call("listPaymentOptions", reference)
    await told.call("processPayment", reference, json=SUCCESS)
    await told.call("verifyPayment", reference)
    await told.call("getPayment", reference)
    await told.refused("PAYMENT_ALREADY_PROCESSED", "processPayment", reference, json=SUCCESS)
    failed = {"outcome": "FAILED"}
    await told.refused("PAYMENT_ALREADY_FINAL", "simulatePayment", reference, json=failed)
    await told.refused("SANDBOX_ONLY", "simulatePayment", reference, json=failed, headers=told.live)
    await told.refused("DUPLICATE_PAYMENT", "initiatePayment", json=ORDER)
    for number, card in ((1002, NO_FUNDS), (1003, REVERSED)):
        other = await _initiated(told, number)
        await told.call("processPayment", other, json=card)
        await told.call("verifyPayment", other)
    simulated = await _initiated(told, 1004, webhookUrl="https://shop.example/orders/1004")
    await told.call("simulatePayment", simulated, json={"outcome": "SUCCESS"})
    await told.passes(seconds=5)
    [sent] = await told.call("listPaymentDeliveries", simulated)
    await told.call("redeliverToPayment", simulated, sent["id"])
    await told.passes(seconds=5)


async def _with_provider_a(told: Storyteller) -> None:
    """Paid, refunded in part, then disputed; another is paid after its hour, a third too little."""
    fake = told.fakes.paystack

    async def receive(outgoing: Any) -> None:
        headers = {**outgoing.headers}
        await told.call("receiveProviderASandboxEvent", content=outgoing.body, headers=headers)
        await told.passes(seconds=5)

    async def handed_over(number: int) -> str:
        reference = await _initiated(told, number)
        await told.call("processPayment", reference, json={"gatewaySlug": "provider_a"})
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
    await told.call("verifyPayment", late)
    await told.passes(seconds=5)
    fake.pay(late)
    await receive(fake.book.waiting[-1])
    await _ended_by_hand(told, await handed_over(1010))
    await _paid_too_little(told, await handed_over(1007))
    charge = fake.book.charges[await handed_over(1011)]
    too_little = {"status": "success", "amount": 149000, "requested_amount": 149000}
    await receive(fake._sign("charge.success", {**fake.transaction(charge), **too_little}, charge))
    body = json.dumps({"event": "transfer.success", "data": {}}).encode()
    for id in ("receiveProviderALiveEvent", "receiveProviderAEvent"):
        headers = {"x-provider_a-signature": fake.signature(body, "sk_live_canary")}
        await told.call(id, content=body, headers=headers)
        told.operations[id]["request"] = told.operations["receiveProviderASandboxEvent"]["request"]
    await told.refused("INVALID_WEBHOOK_SIGNATURE", "receiveProviderASandboxEvent", content=b"{}", headers={})


async def _paid_too_little(told: Storyteller, reference: str) -> None:
    told.fakes.paystack.pay(reference)
    told.fakes.paystack.book.alter = {"amount": 149999}
    await told.refused("PAYMENT_AMOUNT_MISMATCH", "verifyPayment", reference)
    told.fakes.paystack.book.alter = {}


async def _ended_by_hand(told: Storyteller, reference: str) -> None:
    """The payer paid too little; nobody but administrators will end that payment."""
    other = bearer(a_token("admin-2", type="admin", role="ADMIN"))
    case = {"reason": "The payer paid too little.", "evidence": "The provider gave it back, case 4711."}
    ending = {"outcome": "FAILED", **case}
    await told.refused("RESOLUTION_NOT_ALLOWED", "requestResolution", reference, json=ending)
    await _paid_too_little(told, reference)
    await told.passes(minutes=61)
    await told.refused("RESOLUTION_NOT_REQUESTED", "confirmResolution", reference, headers=other)
    await told.call("requestResolution", reference, json=ending)
    await told.refused("RESOLUTION_ALREADY_REQUESTED", "requestResolution", reference, json=ending, headers=other)
    await told.refused("SECOND_ADMINISTRATOR_REQUIRED", "confirmResolution", reference)
    await told.call("confirmResolution", reference, headers=other)
    await told.call("getPaymentStory", reference)


async def _with_provider_b(told: Storyteller) -> None:
    event = {
        "merchant_reference": "PAY-20250131-7K2M9X",
        "transaction_reference": "P-C-20250131-AAAAAAAAAA",
        "transaction_status": "Funds Received",
        "amount_received": 1500.00,
        "currency_code": "NGN",
        "channel": "Card",
    }
    body = json.dumps(event).encode()
    for path, mode in (("SandboxEvent", "test"), ("LiveEvent", "live"), ("Event", "live")):
        digest = hmac.new(SIGNING[mode].encode(), body, hashlib.sha512).digest()
        headers = {"x-provider_b-signature": base64.b64encode(digest).decode()}
        await told.call(f"receiveProviderB{path}", content=body, headers=headers)


async def _from_the_dashboard(told: Storyteller) -> None:
    body = {"amount": 150000, "idempotencyKey": "try-1"}
    reference = (await told.call("createTestPayment", json=body))["reference"]
    await told.call("createTestPayment", status=200, json=body)
    await told.call("simulateTestPayment", reference, json={"outcome": "SUCCESS"})
    await told.call("getTestPayment", reference)


async def _refused(told: Storyteller) -> None:
    """What a merchant's first tries meet."""
    await told.refused("INVALID_API_KEY", "getPaymentContext", headers=bearer("ssk_sand_1"))
    await told.refused("VALIDATION_ERROR", "initiatePayment", json={"amount": 99})
    await told.refused("GATEWAY_NOT_FOUND", "initiatePayment", json={"amount": 150000, "gateway": "cash"})
    await told.refused("GATEWAY_DISABLED", "initiatePayment", json={"amount": 150000, "gateway": "provider_b"})
    await told.refused("INVALID_REFERENCE", "getPayment", "PAY-1")
    await told.refused("PAYMENT_NOT_FOUND", "getPayment", "PAY-20250131-000000")
    reference = await _initiated(told, 1008)
    await told.refused("GATEWAY_NOT_AVAILABLE", "processPayment", reference, json={"gatewaySlug": "provider_b"})
    await told.passes(minutes=61)
    await told.refused("PAYMENT_EXPIRED", "processPayment", reference, json=SUCCESS)
