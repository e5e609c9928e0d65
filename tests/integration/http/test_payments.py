"""Payments with a secret key, over HTTP on Postgres."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from payagg.domain.api_key import hash_secret
from payagg.domain.business import BusinessStatus, KycStatus
from tests.support.http_world import Api, Shop, assert_refused, bearer

INTERNAL = {"processorResponse", "processorReference", "webhookUrl", "businessId", "idempotencyKey", "fingerprint"}


async def posted(api: Api, headers: dict[str, str], body: Any) -> httpx.Response:
    return await api.client.post("/payments/initiate", headers=headers, json=body)


@pytest.mark.rule("GET /payments/context", "POST /payments/initiate", "GET /payments/{reference}")
@pytest.mark.rule("POST /payments/{reference}/simulate", "PAYMENT_ALREADY_FINAL")
async def test_a_payment_from_initiate_to_success(api: Api) -> None:
    shop = await api.open_shop(kyc=KycStatus.PENDING)
    own = {"businessId": shop.business.id, "businessName": shop.business.name}
    context = await api.get("/payments/context", shop.as_sandbox)
    assert context == {**own, "environment": "SANDBOX", "kycStatus": "PENDING"}
    payer = {"customerEmail": "ada@example.com", "metadata": {"order": 7}}
    sent = {"amount": 150000, "webhookUrl": "https://shop.example/hooks", **payer}
    answer = await posted(api, shop.as_sandbox, sent)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert "idempotency-replayed" not in answer.headers
    initiated = answer.json()["data"]
    reference, told = initiated["reference"], ("reference", "expiresAt")
    assert {name: value for name, value in initiated.items() if name not in told} == {
        **{"checkoutUrl": f"http://127.0.0.1:8000/checkout/{reference}", "amount": 150000, "currency": "NGN"},
        **{"environment": "SANDBOX", "status": "INITIATED"},
    }
    assert set(told) <= set(initiated)

    read = await api.get(f"/payments/{reference}", shop.as_sandbox)
    assert {name: read[name] for name in payer} == payer
    assert not INTERNAL & set(read)
    simulate = f"/payments/{reference}/simulate"
    assert (await api.send("POST", simulate, shop.as_sandbox, outcome="success"))["status"] == "SUCCESS"
    again = await api.client.post(simulate, headers=shop.as_sandbox, json={"outcome": "FAILED"})
    assert_refused(again, 409, "PAYMENT_ALREADY_FINAL")


@pytest.mark.rule("payments.6", "payments.7", "payments.9", "payments.10", "payments.11", "DUPLICATE_PAYMENT")
async def test_an_idempotency_key_makes_one_payment_until_that_is_completed(api: Api, shop: Shop, other: Shop) -> None:
    body = {"amount": 500, "idempotencyKey": "k"}
    answers = await asyncio.gather(*(posted(api, shop.as_sandbox, body) for _ in range(16)))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 15}
    assert len({answer.text for answer in answers}) == 1
    assert Counter(answer.headers.get("idempotency-replayed") for answer in answers) == {None: 1, "true": 15}
    first = answers[0].json()

    in_header = shop.as_sandbox | {"Idempotency-Key": "k"}
    by_header = await posted(api, in_header, {"amount": 500})
    assert (by_header.status_code, by_header.json()) == (200, first)
    assert "idempotency-mismatch" not in by_header.headers
    changed = await posted(api, in_header, {"amount": 900})
    assert (changed.json(), changed.headers["idempotency-mismatch"]) == (first, "true")
    for key, sent in (("other", body), ("k" * 256, {"amount": 500})):
        wrong = await posted(api, shop.as_sandbox | {"Idempotency-Key": key}, sent)
        assert_refused(wrong, 400, "VALIDATION_ERROR", "idempotencyKey")

    reference = first["data"]["reference"]
    elsewhere = [await posted(api, headers, body) for headers in (other.as_sandbox, shop.as_live)]
    assert len({reference, *(answer.json()["data"]["reference"] for answer in elsewhere)}) == 3
    await api.client.post(f"/payments/{reference}/simulate", headers=shop.as_sandbox, json={"outcome": "FAILED"})
    assert_refused(await posted(api, shop.as_sandbox, body), 409, "DUPLICATE_PAYMENT")


@pytest.mark.rule("payments.8")
async def test_a_cached_key_is_refused_at_once_when_it_has_changed(api: Api) -> None:
    # A new payment, a replay that would tell of an old one, and nothing that could be read.
    bodies: list[Any] = [{"amount": 500}, {"amount": 150000, "idempotencyKey": "first"}, {"amount": 1.5}, []]

    async def refused(shop: Shop, status: int, code: str, *secrets: str) -> None:
        for secret in secrets:
            for body in bodies:
                assert_refused(await posted(api, bearer(secret), body), status, code)
            for reference in (payment, "PAY-20250131-ABSENT", "nonsense"):
                assert_refused(await api.client.get(f"/payments/{reference}", headers=bearer(secret)), status, code)
        assert api.services.access.cached.keys() >= {hash_secret(secret) for secret in secrets}

    shop = await api.open_shop()
    for _ in range(3):  # the first use of a key writes when it was used, the second is cached
        for credential in (shop.as_sandbox, shop.as_live):
            await api.initiate(shop, credential, idempotencyKey="first")
    payment = (await api.initiate(shop))["reference"]
    await api.change(shop, kyc_status=KycStatus.UNDER_REVIEW)
    await refused(shop, 403, "KYC_REQUIRED", shop.live)
    await api.initiate(shop)
    await api.change(shop, status=BusinessStatus.SUSPENDED)
    await refused(shop, 403, "BUSINESS_RESTRICTED", shop.sandbox, shop.live)
    await api.change(shop, status=BusinessStatus.ACTIVE)
    await api.initiate(shop)
    async with api.services.store.begin() as tx:
        for key in await tx.api_keys.list_keys(shop.business.id, 20):
            await tx.api_keys.save(key.revoke(api.services.clock.now()))
    await refused(shop, 401, "INVALID_API_KEY", shop.sandbox, shop.live)


@pytest.mark.rule("webhooks.18")
async def test_a_webhook_url_that_nothing_can_be_sent_to_is_told(api: Api, shop: Shop) -> None:
    body = {"amount": 500, "webhookUrl": "https://shop.example/own", "idempotencyKey": "k"}
    for status in (201, 200):
        answer = await posted(api, shop.as_sandbox, body)
        assert (answer.status_code, answer.headers["webhook-url-warning"]) == (status, "no-active-endpoint")
        await api.add_endpoint(shop, environment="LIVE")
    assert "webhook-url-warning" not in (await posted(api, shop.as_sandbox, {"amount": 500})).headers
    await api.add_endpoint(shop)
    assert "webhook-url-warning" not in (await posted(api, shop.as_sandbox, body)).headers


@pytest.mark.rule("payments.12", "payments.13")
async def test_a_reference_of_others_answers_exactly_like_an_unknown_one(api: Api, shop: Shop, other: Shop) -> None:
    sandbox = (await api.initiate(shop))["reference"]
    live = (await api.initiate(shop, shop.as_live))["reference"]
    unknown = sandbox[:-6] + "ZZZZZZ"
    for reference, key in ((live, shop.as_sandbox), (sandbox, shop.as_live), (sandbox, other.as_sandbox)):
        seen = []
        for path in (f"/payments/{reference}", f"/payments/{unknown}"):
            read = await api.client.get(path, headers=key)
            simulated = await api.client.post(f"{path}/simulate", json={"outcome": "SUCCESS"}, headers=key)
            for answer in (read, simulated):
                own = ("x-request-id", "date", "ratelimit", "ratelimit-policy")  # of this very request
                headers = {name: value for name, value in answer.headers.items() if name not in own}
                seen.append((answer.status_code, answer.content, headers))
            assert_refused(read, 404, "PAYMENT_NOT_FOUND")
        assert seen[:2] == seen[2:]


@pytest.mark.rule("payments.3", "BUSINESS_RESTRICTED", "KYC_REQUIRED", "SANDBOX_ONLY", "NO_GATEWAY_AVAILABLE")
@pytest.mark.rule("GATEWAY_NOT_FOUND", "GATEWAY_DISABLED")
async def test_refusals_of_initiate_in_order_of_precedence(api: Api) -> None:
    restricted = await api.open_shop(status=BusinessStatus.RESTRICTED)
    unapproved = await api.open_shop(kyc=KycStatus.PENDING)
    shop = await api.open_shop()
    await api.send("PATCH", f"{shop.path}/gateways/gw_provider_a", shop.as_owner, isEnabled=False)
    bad = {"amount": 1, "gateway": "nowhere"}
    for headers, body, status, code in (
        ({}, bad, 401, "UNAUTHORIZED"),
        (bearer("nonsense"), bad, 401, "INVALID_API_KEY"),
        (restricted.as_sandbox, bad, 403, "BUSINESS_RESTRICTED"),
        (restricted.as_live, bad, 403, "BUSINESS_RESTRICTED"),
        (unapproved.as_live, bad, 403, "KYC_REQUIRED"),
        (shop.as_live, bad, 400, "VALIDATION_ERROR"),
        (shop.as_live, {"amount": 100, "gateway": "nowhere"}, 400, "GATEWAY_NOT_FOUND"),
        (shop.as_live, {"amount": 100, "gateway": "sandbox"}, 400, "GATEWAY_NOT_FOUND"),
        (shop.as_live, {"amount": 100, "gateway": "provider_a"}, 400, "GATEWAY_DISABLED"),
        (shop.as_live, {"amount": 100}, 503, "NO_GATEWAY_AVAILABLE"),
    ):
        answer = await api.client.post("/payments/initiate", json=body, headers=headers)
        assert_refused(answer, status, code)
    assert answer.headers["retry-after"] == "60"
    assert (await api.client.post("/payments/initiate", json={"amount": 100}, headers=unapproved.as_sandbox)).is_success
    for whose in (restricted, unapproved, shop):  # whatever the business
        answer = await api.client.post("/payments/nonsense/simulate", content=b"{", headers=whose.as_live)
        assert_refused(answer, 403, "SANDBOX_ONLY")
