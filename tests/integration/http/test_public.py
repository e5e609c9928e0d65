"""The public payment operations: refusals in order, and nothing of the payment can be changed from outside."""

from datetime import timedelta

import pytest

from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from tests.support.http_world import Api, assert_refused

pytestmark = pytest.mark.anyio
CARD = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}


@pytest.mark.rule("payments.5", "GATEWAY_NOT_AVAILABLE", "PAYMENT_ALREADY_PROCESSED", "PAYMENT_EXPIRED")
async def test_refusals_of_process_in_order_of_precedence(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    open_payment = (await api.initiate(shop))["reference"]
    live = (await api.initiate(shop, shop.as_live))["reference"]
    final = await api.paid(shop)
    hour_ago = api.services.clock.now() - timedelta(hours=1)
    expired = Payment.initiate(
        reference="PAY-20250131-EXP1RD",
        business_id=shop.business.id,
        environment=Environment.SANDBOX,
        amount=100,
        now=hour_ago,
    )
    await api.services.store.add_payment(expired)
    unknown = "PAY-20250131-ZZZZZZ"
    for reference, body, status, code, field in (
        ("nonsense", {"gatewaySlug": 7}, 400, "INVALID_REFERENCE", "reference"),
        (unknown, {"gatewaySlug": 7}, 400, "VALIDATION_ERROR", "gatewaySlug"),
        (unknown, {"gatewaySlug": "nowhere"}, 400, "VALIDATION_ERROR", "gatewaySlug"),
        (unknown, {"gatewaySlug": "sandbox\n"}, 400, "VALIDATION_ERROR", "gatewaySlug"),
        (unknown, {"gatewaySlug": "sandbox", "cardNumber": "1"}, 400, "VALIDATION_ERROR", "cardNumber"),
        (unknown, CARD, 404, "PAYMENT_NOT_FOUND", None),
        (open_payment, {}, 400, "VALIDATION_ERROR", "gatewaySlug"),
        (open_payment, {"gatewaySlug": "sandbox"}, 400, "VALIDATION_ERROR", "cardNumber"),
        (open_payment, {"gatewaySlug": "builtin"}, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug"),
        (open_payment, {"gatewaySlug": "provider_b"}, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug"),
        (live, CARD, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug"),
        (final, CARD, 409, "PAYMENT_ALREADY_PROCESSED", None),
        (expired.reference, CARD, 410, "PAYMENT_EXPIRED", None),
    ):
        answer = await api.client.post(f"/public/payments/{reference}/process", json=body)
        assert_refused(answer, status, code, field)
    await api.services.settlement.expire_due()
    swept = await api.client.post(f"/public/payments/{expired.reference}/process", json=CARD)
    assert_refused(swept, 410, "PAYMENT_EXPIRED")


@pytest.mark.rule("checkout.1")
async def test_a_payer_cannot_change_what_the_merchant_fixed(api: Api) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop, callbackUrl="https://shop.example/thanks"))["reference"]
    extra = {"amount": 1, "currency": "USD", "environment": "LIVE", "callbackUrl": "https://evil.example"}
    answer = await api.client.post(f"/public/payments/{reference}/process", json=CARD | extra)
    assert answer.status_code == 200
    read = (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).json()["data"]
    assert (read["amount"], read["environment"]) == (150000, "SANDBOX")
    assert read["callbackUrl"] == "https://shop.example/thanks"


@pytest.mark.rule("PAYMENT_NOT_FOUND")
async def test_every_read_refuses_a_malformed_and_an_unknown_reference(api: Api) -> None:
    for tail in ("", "/gateways", "/verify"):
        malformed = await api.client.get(f"/public/payments/nonsense{tail}")
        assert_refused(malformed, 400, "INVALID_REFERENCE", "reference")
        unknown = await api.client.get(f"/public/payments/PAY-20250131-ZZZZZZ{tail}")
        assert_refused(unknown, 404, "PAYMENT_NOT_FOUND")
        assert unknown.headers["cache-control"] == "no-store"


@pytest.mark.rule("checkout.2")
async def test_no_card_number_is_repeated_or_kept(api: Api) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop))["reference"]
    real_looking = "4111111111111111"
    refused = await api.client.post(
        f"/public/payments/{reference}/process", json={"gatewaySlug": "sandbox", "cardNumber": real_looking}
    )
    assert_refused(refused, 400, "VALIDATION_ERROR", "cardNumber")
    assert real_looking not in refused.text
    accepted = await api.client.post(f"/public/payments/{reference}/process", json=CARD)
    async with api.services.store.begin() as tx:
        attempts = await tx.payments.attempts(reference)
    assert CARD["cardNumber"] not in accepted.text + repr(attempts)


async def test_a_card_is_asked_for_only_where_one_is_used(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    reference = (await api.initiate(shop))["reference"]
    path = f"/public/payments/{reference}/process"
    first = await api.client.post(path, json=CARD)
    again = await api.client.post(path, json={"gatewaySlug": "sandbox"})
    assert (again.status_code, again.json()["data"]) == (first.status_code, first.json()["data"])
    live = (await api.initiate(shop, shop.as_live))["reference"]
    refused = await api.client.post(f"/public/payments/{live}/process", json={"gatewaySlug": "sandbox"})
    assert_refused(refused, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
