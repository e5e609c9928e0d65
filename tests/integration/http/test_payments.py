"""Payments with a secret key, over HTTP on Postgres."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from payagg.adapters.postgres.fast_path.statements import ORIGINALS
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.payment_rows import ADD
from payagg.adapters.postgres.statement import Statement
from payagg.application.payments.payments import Payments
from payagg.application.ports.accounts import KeyHolder
from payagg.domain.api_key import hash_secret
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.values import Environment
from tests.support.http_world import Api, Shop, assert_refused, bearer

pytestmark = pytest.mark.anyio
INTERNAL = {"processorResponse", "processorReference", "webhookUrl", "businessId", "idempotencyKey", "fingerprint"}


@pytest.fixture(scope="module")
async def api(shared_api: Api) -> Api:
    await shared_api.open_gateways()
    return shared_api


async def posted(api: Api, headers: dict[str, str], body: Any) -> httpx.Response:
    return await api.client.post("/payments/initiate", headers=headers, json=body)


@pytest.mark.rule(
    "GET /payments/context",
    "POST /payments/initiate",
    "GET /payments/{reference}",
    "POST /payments/{reference}/simulate",
    "PAYMENT_ALREADY_FINAL",
)
async def test_a_payment_from_initiate_to_success(api: Api) -> None:
    shop = await api.open_shop(kyc=KycStatus.PENDING)
    context = await api.client.get("/payments/context", headers=shop.as_sandbox)
    own = {"businessId": shop.business.id, "businessName": shop.business.name}
    assert context.json()["data"] == {**own, "environment": "SANDBOX", "kycStatus": "PENDING"}
    sent = {
        "amount": 150000,
        "customerEmail": "ada@example.com",
        "metadata": {"order": 7},
        "webhookUrl": "https://shop.example/hooks",
    }
    answer = await posted(api, shop.as_sandbox, sent)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert "idempotency-replayed" not in answer.headers
    initiated = answer.json()["data"]
    assert set(initiated) == {"reference", "checkoutUrl", "amount", "currency", "environment", "status", "expiresAt"}
    assert initiated["amount"] == 150000
    assert (initiated["currency"], initiated["environment"], initiated["status"]) == ("NGN", "SANDBOX", "INITIATED")
    reference = initiated["reference"]
    assert initiated["checkoutUrl"] == f"http://127.0.0.1:8000/checkout/{reference}"

    read = (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).json()["data"]
    assert (read["metadata"], read["customerEmail"]) == ({"order": 7}, "ada@example.com")
    assert not INTERNAL & set(read)
    simulate = f"/payments/{reference}/simulate"
    simulated = await api.client.post(simulate, headers=shop.as_sandbox, json={"outcome": "success"})
    assert simulated.json()["data"]["status"] == "SUCCESS"
    again = await api.client.post(simulate, headers=shop.as_sandbox, json={"outcome": "FAILED"})
    assert_refused(again, 409, "PAYMENT_ALREADY_FINAL")


@pytest.mark.rule("payments.6", "payments.7", "payments.9", "payments.10", "payments.11", "DUPLICATE_PAYMENT")
async def test_an_idempotency_key_makes_one_payment_until_that_is_completed(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
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


async def a_shop_with_a_cached_key(api: Api) -> Shop:
    """Its keys are known to the process, so that the next initiation or reading rests on what was read before."""
    shop = await api.open_shop()
    for credential in (shop.as_sandbox, shop.as_live):
        for _ in range(2):  # the first use of a key writes when it was used
            await api.initiate(shop, credential, idempotencyKey="first")
        await api.initiate(shop, credential)
    assert len([key for key in api.services.access.cached.values() if key.business.id == shop.business.id]) == 2
    return shop


@pytest.mark.rule("payments.8")
async def test_a_cached_key_is_refused_at_once_when_it_has_changed(api: Api) -> None:
    async def refused(shop: Shop, status: int, code: str, *credentials: dict[str, str]) -> None:
        """Whatever is sent: a new payment, a replay that would tell of an old one, or nothing that could be read.
        And whatever is asked for."""
        for credential in credentials:
            bodies: list[Any] = [{"amount": 500}, {"amount": 150000, "idempotencyKey": "first"}, {"amount": 1.5}, []]
            for body in bodies:
                sent = await api.client.post("/payments/initiate", headers=credential, json=body)
                assert_refused(sent, status, code)
            for reference in (payment, "PAY-20250131-ABSENT", "nonsense"):
                asked = await api.client.get(f"/payments/{reference}", headers=credential)
                assert_refused(asked, status, code)
        assert api.services.access.cached.keys() >= {hash_secret(bearer_of(c)) for c in credentials}

    def bearer_of(credential: dict[str, str]) -> str:
        return credential["Authorization"].removeprefix("Bearer ")

    shop = await a_shop_with_a_cached_key(api)
    payment = (await api.initiate(shop))["reference"]
    await api.change(shop, kyc_status=KycStatus.UNDER_REVIEW)
    await refused(shop, 403, "KYC_REQUIRED", shop.as_live)
    await api.initiate(shop)
    await api.change(shop, status=BusinessStatus.SUSPENDED)
    await refused(shop, 403, "BUSINESS_RESTRICTED", shop.as_sandbox, shop.as_live)
    await api.change(shop, status=BusinessStatus.ACTIVE)
    await api.initiate(shop)
    async with api.services.store.begin() as tx:
        for environment in Environment:
            for key in await tx.api_keys.list_keys(shop.business.id, environment, 20):
                await tx.api_keys.save(key.revoke(api.services.clock.now()))
    await refused(shop, 401, "INVALID_API_KEY", shop.as_sandbox, shop.as_live)


async def test_a_cached_key_is_answered_as_one_just_read_and_costs_no_reading(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await a_shop_with_a_cached_key(api)
    theirs = (await api.initiate(await api.open_shop()))["reference"]
    reads: list[bytes] = []
    statements: list[Statement] = []
    store = api.services.store
    find_key, send = store.find_key, StatementConnection.send

    async def counted(secret_hash: bytes) -> KeyHolder | None:
        reads.append(secret_hash)
        return await find_key(secret_hash)

    def noted(connection: StatementConnection, statement: Statement, **values: Any) -> None:
        statements.append(statement)
        send(connection, statement, **values)

    monkeypatch.setattr(store, "find_key", counted)
    monkeypatch.setattr(StatementConnection, "send", noted)
    for credential, taken in ((shop.as_sandbox, [ADD, ORIGINALS]), (shop.as_live, [ORIGINALS])):
        statements.clear()
        replay = await posted(api, credential, {"amount": 900, "idempotencyKey": "first"})
        assert (replay.status_code, replay.headers["idempotency-replayed"]) == (200, "true")
        assert replay.headers["idempotency-mismatch"] == "true"
        assert statements == taken
    mine = (await api.initiate(shop))["reference"]
    read = await api.client.get(f"/payments/{mine}", headers=shop.as_sandbox)
    assert (read.status_code, read.json()["data"]["reference"]) == (200, mine)
    assert reads == []
    for credential in (shop.as_sandbox, shop.as_live):
        assert_refused(await posted(api, credential, {"amount": 1}), 400, "VALIDATION_ERROR", "amount")
        unknown = await posted(api, credential, {"amount": 500, "gateway": "nobody"})
        assert_refused(unknown, 400, "GATEWAY_NOT_FOUND", "gateway")
    for credential, reference in ((shop.as_live, mine), (shop.as_sandbox, theirs)):
        asked = await api.client.get(f"/payments/{reference}", headers=credential)
        assert_refused(asked, 404, "PAYMENT_NOT_FOUND")
    nonsense = await api.client.get("/payments/nonsense", headers=shop.as_sandbox)
    assert_refused(nonsense, 400, "INVALID_REFERENCE", "reference")


@pytest.mark.rule("webhooks.18")
async def test_a_webhook_url_that_nothing_can_be_sent_to_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = await api.open_shop()
    body = {"amount": 500, "webhookUrl": "https://shop.example/own", "idempotencyKey": "k"}

    async def warning(**fields: str) -> str | None:
        answer = await posted(api, shop.as_sandbox, body | fields)
        assert answer.status_code in (200, 201)
        told: str | None = answer.headers.get("webhook-url-warning")
        return told

    assert [await warning(), await warning()] == ["no-active-endpoint"] * 2
    for environment in ("LIVE", "SANDBOX"):
        made = await api.add_endpoint(shop, environment=environment)
        assert await warning() == (None if environment == "SANDBOX" else "no-active-endpoint")
    path = f"{shop.path}/webhooks/{made['id']}"
    assert (await api.client.delete(path, headers=shop.as_owner)).status_code == 200
    assert await warning(idempotencyKey="other") == "no-active-endpoint"
    # Without an address nobody is asked for endpoints.
    monkeypatch.delattr(Payments, "_has_endpoint")
    without = await posted(api, shop.as_sandbox, {"amount": 500})
    assert (without.status_code, "webhook-url-warning" in without.headers) == (201, False)


@pytest.mark.rule("payments.12", "payments.13")
async def test_a_reference_of_others_answers_exactly_like_an_unknown_one(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
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
    listed = (await api.client.get(f"{shop.path}/gateways", headers=shop.as_owner)).json()["data"]
    choice = f"{shop.path}/gateways/{next(one['id'] for one in listed if one['slug'] == 'provider_a')}"
    await api.client.patch(choice, json={"isEnabled": False}, headers=shop.as_owner)
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
    assert (await api.client.post("/payments/initiate", json={"amount": 100}, headers=unapproved.as_sandbox)).is_success
    for whose in (restricted, unapproved, shop):  # whatever the business
        answer = await api.client.post("/payments/nonsense/simulate", content=b"{", headers=whose.as_live)
        assert_refused(answer, 403, "SANDBOX_ONLY")
