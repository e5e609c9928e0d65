"""The public payment operations and the dashboard's test payments: nothing of the payment is changed from outside."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from payagg_testing.builders import a_payment

from payagg.application.payments.expiry import sweep_expired
from payagg.application.reports.explain import timeline
from payagg.domain.business import KycStatus
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from tests.support.http_world import Api, Shop, an_api, assert_refused
from tests.support.provider_world import world_on

CARD = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}


@pytest.mark.rule("GET /public/payments/{reference}", "GET /public/payments/{reference}/gateways")
@pytest.mark.rule("POST /public/payments/{reference}/process", "GET /public/payments/{reference}/verify", "checkout.1")
@pytest.mark.rule("checkout.2")
async def test_a_payer_pays_and_changes_nothing_that_the_merchant_fixed(api: Api, shop: Shop) -> None:
    home = "https://shop.example/thanks?x=1"
    reference = (await api.initiate(shop, callbackUrl=home))["reference"]
    public = f"/public/payments/{reference}"
    detail = await api.client.get(public)
    assert detail.headers["cache-control"] == "no-store"
    assert not {"customerEmail", "callbackUrl", "metadata", "businessId"} & set(detail.json()["data"])
    options = (await api.get(f"{public}/gateways"))["gateways"]
    assert [option["slug"] for option in options] == ["builtin", "provider_a", "sandbox"]
    real_looking = CARD | {"cardNumber": "4111111111111111"}
    refused = await api.client.post(f"{public}/process", json=real_looking)
    assert_refused(refused, 400, "VALIDATION_ERROR", "cardNumber")
    assert real_looking["cardNumber"] not in refused.text

    extra = {"amount": 1, "currency": "USD", "environment": "LIVE", "callbackUrl": "https://evil.example"}
    first = await api.client.post(f"{public}/process", json=CARD | extra | {"cardNumber": "4242 4242 4242 4242"})
    assert first.status_code == 200, first.text
    assert first.json()["data"]["handoff"] == "SIMULATOR"
    for body in (CARD, {"gatewaySlug": "sandbox"}):  # a card is asked for only where one is used
        assert (await api.client.post(f"{public}/process", json=body)).json() == first.json()
    async with api.services.store.begin() as tx:
        attempts = await tx.attempts.of_payment(reference)
    assert CARD["cardNumber"] not in first.text + repr(attempts)
    verified = await api.client.get(f"{public}/verify")
    assert (verified.headers["cache-control"], verified.json()["data"]["status"]) == ("no-store", "SUCCESS")
    assert verified.json()["data"]["redirectUrl"].startswith(f"{home}&reference=")
    read = await api.get(f"/payments/{reference}", shop.as_sandbox)
    assert (read["amount"], read["environment"], read["callbackUrl"]) == (150000, "SANDBOX", home)


@pytest.mark.rule(
    "payments.5", "GATEWAY_NOT_AVAILABLE", "PAYMENT_ALREADY_PROCESSED", "PAYMENT_EXPIRED", "PAYMENT_NOT_FOUND"
)
async def test_refusals_of_process_in_order_of_precedence(api: Api, shop: Shop) -> None:
    open_payment = (await api.initiate(shop))["reference"]
    live = (await api.initiate(shop, shop.as_live))["reference"]
    final = await api.paid(shop)
    hour_ago = api.services.clock.now() - timedelta(hours=1)
    expired, unknown = "PAY-20250131-EXP1RD", "PAY-20250131-ZZZZZZ"
    await api.services.store.add_payment(a_payment(reference=expired, business_id=shop.business.id, now=hour_ago))
    cardless = {"gatewaySlug": "sandbox"}

    async def process(reference: str, body: Any, status: int, code: str, field: str | None = None) -> None:
        assert_refused(await api.client.post(f"/public/payments/{reference}/process", json=body), status, code, field)

    await process("nonsense", {"gatewaySlug": 7}, 400, "INVALID_REFERENCE", "reference")
    for slug in (7, "nowhere", "sandbox\n"):
        await process(unknown, {"gatewaySlug": slug}, 400, "VALIDATION_ERROR", "gatewaySlug")
    await process(unknown, cardless | {"cardNumber": "1"}, 400, "VALIDATION_ERROR", "cardNumber")
    await process(unknown, CARD, 404, "PAYMENT_NOT_FOUND")
    for tail in ("", "/gateways", "/verify"):
        assert_refused(await api.client.get(f"/public/payments/{unknown}{tail}"), 404, "PAYMENT_NOT_FOUND")
    await process(open_payment, {}, 400, "VALIDATION_ERROR", "gatewaySlug")
    await process(open_payment, cardless, 400, "VALIDATION_ERROR", "cardNumber")
    off = [(open_payment, {"gatewaySlug": slug}) for slug in ("builtin", "provider_b")]
    for reference, body in (*off, (live, CARD), (live, cardless)):
        await process(reference, body, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    await process(final, CARD, 409, "PAYMENT_ALREADY_PROCESSED")
    await process(expired, CARD, 410, "PAYMENT_EXPIRED")
    await sweep_expired(api.services.settlement)
    await process(expired, CARD, 410, "PAYMENT_EXPIRED")


@pytest.mark.rule("POST /merchant/businesses/{businessId}/test-payment", "NO_SANDBOX_KEY", "payments.25", "payments.26")
@pytest.mark.rule("GET /merchant/businesses/{businessId}/test-payment/{reference}")
@pytest.mark.rule("POST /merchant/businesses/{businessId}/test-payment/{reference}/simulate")
async def test_a_test_payment_from_creation_to_a_reversal(api: Api) -> None:
    shop, keyless = await api.open_shop(kyc=KycStatus.NOT_SUBMITTED), await api.open_shop(keys=(Environment.LIVE,))
    once: dict[str, Any] = {"amount": 5000, "customerName": "Ada", "idempotencyKey": "t"}

    async def post(path: str = "", whose: Shop = shop, **body: Any) -> httpx.Response:
        return await api.client.post(f"{whose.path}/test-payment{path}", json=body, headers=whose.as_owner)

    extra = {"environment": "LIVE", "gateway": "provider_a", "status": "SUCCESS", "webhookUrl": "nonsense"}
    created = await post(**(once | extra))
    assert (created.status_code, created.json()["data"]["environment"]) == (201, "SANDBOX")
    own = shop.as_owner | {"Idempotency-Key": "t"}
    same = {"amount": 5000, "customerName": "Ada"}
    replay = await api.client.post(f"{shop.path}/test-payment", json=same, headers=own)
    assert (replay.status_code, replay.headers["idempotency-replayed"]) == (200, "true")
    assert replay.json() == created.json()
    reference = created.json()["data"]["reference"]
    read = await api.get(f"{shop.path}/test-payment/{reference}", shop.as_owner)
    assert (read["gateway"], read["status"], read["customerName"]) == ("sandbox", "INITIATED", "Ada")
    assert await api.get(f"/payments/{reference}", shop.as_sandbox) == read
    assert any("SANDBOX, a test payment" in line for line in await timeline(api.services.store, reference))
    public = f"/public/payments/{reference}"
    options = (await api.get(f"{public}/gateways"))["gateways"]
    assert [(option["slug"], option["available"]) for option in options] == [("sandbox", True)]
    refused = await api.client.post(f"{public}/process", json={"gatewaySlug": "provider_a"})
    assert_refused(refused, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    done = await post(f"/{reference}/simulate", outcome="Reversed")
    assert done.json()["data"]["status"] == "REVERSED"
    assert_refused(await post(f"/{reference}/simulate", outcome="SUCCESS"), 409, "PAYMENT_ALREADY_FINAL")
    assert_refused(await post(**once), 409, "DUPLICATE_PAYMENT")
    assert_refused(await post(amount=1), 400, "VALIDATION_ERROR", "amount")
    assert_refused(await post("", keyless, amount=5000), 400, "NO_SANDBOX_KEY")


@pytest.mark.rule("checkout.5", "checkout.6", "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "GATEWAY_NOT_AVAILABLE")
@pytest.mark.rule("PAYMENT_AMOUNT_MISMATCH")
async def test_a_payer_meets_providers_with_and_without_credentials(database_url: str, tmp_path: Path) -> None:
    async with world_on(database_url, tmp_path) as world, an_api(world.services) as api:

        async def process(payment: Payment, slug: str) -> httpx.Response:
            return await api.client.post(f"/public/payments/{payment.reference}/process", json={"gatewaySlug": slug})

        async def verify(payment: Payment) -> httpx.Response:
            return await api.client.get(f"/public/payments/{payment.reference}/verify")

        payment = await world.handed_over()
        book = world.fakes.paystack.book
        book.alter = {"amount": payment.amount - 1, "requested_amount": payment.amount - 1}
        book.webhook_urls.clear()
        world.fakes.paystack.pay(payment.reference)
        for _ in range(2):
            assert_refused(await verify(payment), 502, "PAYMENT_AMOUNT_MISMATCH")
        assert (await world.read(payment)).status.value == "PENDING"

        live = await world.payment(Environment.LIVE)
        data = (await process(live, "provider_b")).json()["data"]
        assert data["handoff"] == "SDK"
        assert data["checkoutUrl"].startswith(f"http://127.0.0.1:8000/checkout/{live.reference}/launch#")
        await world.set_credentials("provider_a", {"liveSecretKey": "sk_live_canary"})
        payment = await world.payment()
        assert_refused(await process(payment, "provider_a"), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")
        options = (await api.get(f"/public/payments/{payment.reference}/gateways"))["gateways"]
        shown = {option["slug"]: (option["available"], option["unavailableReason"]) for option in options}
        assert shown["provider_a"] == (False, "NOT_CONFIGURED")
        assert shown["provider_b"] == (True, None)
        handed_over = await world.handed_over("provider_b")
        await world.set_credentials("provider_b", {"livePublicKey": "PZ78-PKLIVE-CANARY"})
        assert_refused(await verify(handed_over), 400, "GATEWAY_NOT_AVAILABLE")
