"""Payments with a secret key, over HTTP on Postgres."""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import httpx
import pytest

from payagg.adapters.postgres.fast_path.statements import ORIGINALS
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.payment_rows import ADD
from payagg.adapters.postgres.statement import Statement
from payagg.application import access
from payagg.application.payments import Payments
from payagg.application.store import KeyHolder
from payagg.domain.api_key import hash_secret
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.values import Environment
from tests.support.http_world import Api, Shop, assert_refused, bearer

pytestmark = pytest.mark.anyio
INTERNAL = {"processorResponse", "processorReference", "webhookUrl", "businessId", "idempotencyKey", "fingerprint"}


async def posted(api: Api, headers: dict[str, str], body: Any) -> httpx.Response:
    return await api.client.post("/payments/initiate", headers=headers, json=body)


@pytest.mark.rule(
    "POST /payments/initiate",
    "GET /payments/{reference}",
    "POST /payments/{reference}/simulate",
    "PAYMENT_ALREADY_FINAL",
)
async def test_a_payment_from_initiate_to_success(api: Api) -> None:
    shop = await api.open_shop()
    answer = await api.client.post(
        "/payments/initiate",
        headers=shop.as_sandbox,
        json={
            "amount": 150000,
            "customerEmail": "ada@example.com",
            "metadata": {"order": 7},
            "webhookUrl": "https://shop.example/hooks",
        },
    )
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    assert "idempotency-replayed" not in answer.headers
    initiated = answer.json()["data"]
    assert set(initiated) == {"reference", "checkoutUrl", "amount", "currency", "environment", "status", "expiresAt"}
    assert initiated["amount"] == 150000
    assert (initiated["currency"], initiated["environment"], initiated["status"]) == ("NGN", "SANDBOX", "INITIATED")
    reference = initiated["reference"]
    assert initiated["checkoutUrl"] == f"http://127.0.0.1:8000/checkout/{reference}"

    read = (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).json()["data"]
    assert read["metadata"] == {"order": 7}
    assert read["customerEmail"] == "ada@example.com"
    assert not INTERNAL & set(read)

    simulated = await api.client.post(
        f"/payments/{reference}/simulate", headers=shop.as_sandbox, json={"outcome": "success"}
    )
    assert simulated.json()["data"]["status"] == "SUCCESS"
    again = await api.client.post(
        f"/payments/{reference}/simulate", headers=shop.as_sandbox, json={"outcome": "FAILED"}
    )
    assert_refused(again, 409, "PAYMENT_ALREADY_FINAL")


@pytest.mark.rule("GET /payments/context")
async def test_the_context_shows_what_a_key_stands_for(api: Api) -> None:
    shop = await api.open_shop(kyc=KycStatus.PENDING)
    answer = await api.client.get("/payments/context", headers=shop.as_sandbox)
    assert answer.json() == {
        "success": True,
        "data": {
            "businessId": shop.business.id,
            "businessName": shop.business.name,
            "environment": "SANDBOX",
            "kycStatus": "PENDING",
        },
    }


@pytest.mark.rule(
    "GET /public/payments/{reference}",
    "GET /public/payments/{reference}/gateways",
    "POST /public/payments/{reference}/process",
    "GET /public/payments/{reference}/verify",
)
async def test_the_sandbox_page_flow_through_the_public_operations(api: Api) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop, callbackUrl="https://shop.example/thanks?x=1"))["reference"]
    public = f"/public/payments/{reference}"
    detail = await api.client.get(public)
    assert detail.headers["cache-control"] == "no-store"
    assert not {"customerEmail", "callbackUrl", "metadata", "businessId"} & set(detail.json()["data"])
    options = (await api.client.get(f"{public}/gateways")).json()["data"]["gateways"]
    assert "sandbox" in [option["slug"] for option in options]
    card = {"gatewaySlug": "sandbox", "cardNumber": "4242 4242 4242 4242"}
    first = await api.client.post(f"{public}/process", json=card)
    assert first.status_code == 200, first.text
    assert first.json()["data"]["handoff"] == "SIMULATOR"
    assert (await api.client.post(f"{public}/process", json=card)).json() == first.json()
    verified = await api.client.get(f"{public}/verify")
    assert verified.headers["cache-control"] == "no-store"
    assert verified.json()["data"]["status"] == "SUCCESS"
    assert verified.json()["data"]["redirectUrl"].startswith("https://shop.example/thanks?x=1&reference=")
    assert_refused(await api.client.post(f"{public}/process", json=card), 409, "PAYMENT_ALREADY_PROCESSED")


@pytest.mark.rule("payments.6")
async def test_equal_requests_at_once_make_one_payment(api: Api) -> None:
    shop = await api.open_shop()

    async def post() -> httpx.Response:
        return await posted(api, shop.as_sandbox, {"amount": 500, "idempotencyKey": "order-1"})

    answers = await asyncio.gather(*(post() for _ in range(64)))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 63}
    assert len({answer.text for answer in answers}) == 1
    assert Counter(answer.headers.get("idempotency-replayed") for answer in answers) == {None: 1, "true": 63}


async def a_shop_that_is_remembered(api: Api) -> Shop:
    """Its keys are known to the process, so that the next initiation or reading rests on what was read before."""
    await api.open_gateways()
    shop = await api.open_shop()
    for credential in (shop.as_sandbox, shop.as_live):
        for _ in range(2):  # the first use of a key writes when it was used
            await api.initiate(shop, credential, idempotencyKey="first")
        await api.initiate(shop, credential)
    assert len([key for key in api.services.access.remembered.values() if key.business.id == shop.business.id]) == 2
    return shop


@pytest.mark.rule("payments.8")
async def test_a_remembered_key_is_refused_at_once_when_it_stands_otherwise(api: Api) -> None:
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
        assert api.services.access.remembered.keys() >= {hash_secret(bearer_of(c)) for c in credentials}

    def bearer_of(credential: dict[str, str]) -> str:
        return credential["Authorization"].removeprefix("Bearer ")

    shop = await a_shop_that_is_remembered(api)
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
            for key in await tx.api_keys.listed(shop.business.id, environment, 20):
                await tx.api_keys.save(key.revoke(api.services.clock.now()))
    await refused(shop, 401, "INVALID_API_KEY", shop.as_sandbox, shop.as_live)


async def test_a_remembered_key_is_answered_as_one_that_was_just_read(api: Api) -> None:
    shop = await a_shop_that_is_remembered(api)
    initiate = partial(api.client.post, "/payments/initiate")
    for credential in (shop.as_sandbox, shop.as_live):
        replay = await initiate(headers=credential, json={"amount": 900, "idempotencyKey": "first"})
        assert (replay.status_code, replay.headers["idempotency-replayed"]) == (200, "true")
        assert replay.headers["idempotency-mismatch"] == "true"
        assert_refused(await initiate(headers=credential, json={"amount": 1}), 400, "VALIDATION_ERROR", "amount")
        unknown = await initiate(headers=credential, json={"amount": 500, "gateway": "nobody"})
        assert_refused(unknown, 400, "GATEWAY_NOT_FOUND", "gateway")
        huge = await initiate(headers=credential, json={"amount": 500, "metadata": {"x": "y" * 70_000}})
        assert_refused(huge, 413, "PAYLOAD_TOO_LARGE")
    mine = (await api.initiate(shop))["reference"]
    theirs = (await api.initiate(await api.open_shop()))["reference"]
    read = await api.client.get(f"/payments/{mine}", headers=shop.as_sandbox)
    assert (read.status_code, read.json()["data"]["reference"]) == (200, mine)
    for credential, reference in (
        (shop.as_live, mine),
        (shop.as_sandbox, theirs),
        (shop.as_sandbox, "PAY-20250131-ABSENT"),
    ):
        asked = await api.client.get(f"/payments/{reference}", headers=credential)
        assert_refused(asked, 404, "PAYMENT_NOT_FOUND")
    nonsense = await api.client.get("/payments/nonsense", headers=shop.as_sandbox)
    assert_refused(nonsense, 400, "INVALID_REFERENCE", "reference")


async def test_a_remembered_key_costs_no_reading(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = await a_shop_that_is_remembered(api)
    reads = []
    store = api.services.store
    find_key = store.find_key

    async def counted(secret_hash: bytes) -> KeyHolder | None:
        reads.append(secret_hash)
        return await find_key(secret_hash)

    monkeypatch.setattr(store, "find_key", counted)
    for _ in range(3):
        reference = (await api.initiate(shop))["reference"]
        assert (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).status_code == 200
    assert reads == []


async def test_a_replay_with_a_remembered_key_takes_two_statements(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = await a_shop_that_is_remembered(api)
    statements: list[Statement] = []
    send = StatementConnection.send

    def noted(connection: StatementConnection, statement: Statement, **values: Any) -> None:
        statements.append(statement)
        send(connection, statement, **values)

    monkeypatch.setattr(StatementConnection, "send", noted)
    for credential, taken in ((shop.as_sandbox, [ADD, ORIGINALS]), (shop.as_live, [ORIGINALS])):
        replay = await posted(api, credential, {"amount": 150000, "idempotencyKey": "first"})
        assert (replay.status_code, replay.headers["idempotency-replayed"]) == (200, "true")
        assert statements == taken
        statements.clear()


async def test_the_keys_read_longest_ago_are_forgotten(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "REMEMBERED_MAX", 2)
    first, second, third = [await api.open_shop() for _ in range(3)]
    for shop in (first, second, first, third):
        await api.client.get("/payments/context", headers=shop.as_sandbox)
    assert list(api.services.access.remembered) == [hash_secret(first.sandbox), hash_secret(third.sandbox)]


@pytest.mark.rule("webhooks.18")
async def test_a_webhook_url_that_nothing_can_be_sent_to_is_told(api: Api) -> None:
    shop = await api.open_shop()
    body = {"amount": 500, "webhookUrl": "https://shop.example/own", "idempotencyKey": "k"}

    async def warning(headers: dict[str, str] = shop.as_sandbox, **fields: str) -> str | None:
        answer = await api.client.post("/payments/initiate", headers=headers, json=body | fields)
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


async def test_a_payment_without_a_webhook_url_asks_for_no_endpoints(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = await api.open_shop()
    asked: list[str] = []

    async def noted(self: Payments, business_id: str, environment: Environment) -> bool:
        asked.append(business_id)
        return False

    monkeypatch.setattr(Payments, "_has_endpoint", noted)
    answer = await posted(api, shop.as_sandbox, {"amount": 500})
    assert (asked, answer.headers.get("webhook-url-warning")) == ([], None)


@pytest.mark.rule("payments.9")
async def test_the_header_is_the_equal_of_the_field(api: Api) -> None:
    shop = await api.open_shop()
    by_field = await posted(api, shop.as_sandbox, {"amount": 500, "idempotencyKey": "k"})
    by_header = await posted(api, shop.as_sandbox | {"Idempotency-Key": "k"}, {"amount": 500})
    assert (by_field.status_code, by_header.status_code) == (201, 200)
    assert by_header.json() == by_field.json()
    assert "idempotency-mismatch" not in by_header.headers
    both = await api.client.post(
        "/payments/initiate",
        headers=shop.as_sandbox | {"Idempotency-Key": "other"},
        json={"amount": 500, "idempotencyKey": "k"},
    )
    assert_refused(both, 400, "VALIDATION_ERROR", "idempotencyKey")
    overlong = await posted(api, shop.as_sandbox | {"Idempotency-Key": "k" * 256}, {"amount": 500})
    assert_refused(overlong, 400, "VALIDATION_ERROR", "idempotencyKey")


@pytest.mark.rule("payments.7")
async def test_another_body_with_the_same_key_is_answered_and_marked(api: Api) -> None:
    shop = await api.open_shop()
    first = await api.initiate(shop, idempotencyKey="k", amount=500)
    other = await posted(api, shop.as_sandbox, {"amount": 900, "idempotencyKey": "k"})
    assert other.json()["data"] == first
    assert other.headers["idempotency-mismatch"] == "true"


@pytest.mark.rule("payments.11")
async def test_a_key_is_scoped_by_business_and_environment(api: Api) -> None:
    await api.open_gateways()
    shop, other = await api.open_shop(), await api.open_shop()
    made = [
        (await api.initiate(shop, idempotencyKey="k"))["reference"],
        (await api.initiate(other, idempotencyKey="k"))["reference"],
        (await api.initiate(shop, shop.as_live, idempotencyKey="k"))["reference"],
    ]
    assert len(set(made)) == 3


@pytest.mark.rule("payments.10", "DUPLICATE_PAYMENT")
async def test_a_completed_payment_holds_its_key(api: Api) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop, idempotencyKey="k"))["reference"]
    await api.client.post(f"/payments/{reference}/simulate", headers=shop.as_sandbox, json={"outcome": "FAILED"})
    again = await posted(api, shop.as_sandbox, {"amount": 150000, "idempotencyKey": "k"})
    assert_refused(again, 409, "DUPLICATE_PAYMENT")


@pytest.mark.rule("payments.12")
async def test_environments_and_businesses_do_not_see_each_other(api: Api) -> None:
    await api.open_gateways()
    shop, other = await api.open_shop(), await api.open_shop()
    sandbox = (await api.initiate(shop))["reference"]
    live = (await api.initiate(shop, shop.as_live))["reference"]
    unknown = sandbox[:-6] + "ZZZZZZ"
    for reference, headers in (
        (live, shop.as_sandbox),
        (sandbox, shop.as_live),
        (sandbox, other.as_sandbox),
        (unknown, shop.as_sandbox),
    ):
        assert_refused(await api.client.get(f"/payments/{reference}", headers=headers), 404, "PAYMENT_NOT_FOUND")


@pytest.mark.rule("payments.13")
async def test_anothers_reference_answers_exactly_like_an_unknown_one(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    reference = (await api.initiate(shop))["reference"]
    unknown = reference[:-6] + "ZZZZZZ"
    seen = []
    for path in (f"/payments/{reference}", f"/payments/{unknown}"):
        for method, body in (("GET", None), ("POST", {"outcome": "SUCCESS"})):
            answer = await api.client.request(
                method, path + ("/simulate" if body else ""), json=body, headers=other.as_sandbox
            )
            own = ("x-request-id", "date", "ratelimit", "ratelimit-policy")  # of this very request
            headers = {k: v for k, v in answer.headers.items() if k not in own}
            seen.append((method, answer.status_code, answer.content, tuple(sorted(headers.items()))))
    assert seen[:2] == seen[2:]


@pytest.mark.rule("SANDBOX_ONLY")
@pytest.mark.parametrize("status", [BusinessStatus.RESTRICTED, BusinessStatus.SUSPENDED])
async def test_simulate_with_a_live_key_is_sandbox_only_before_anything_else(api: Api, status: BusinessStatus) -> None:
    shop = await api.open_shop(kyc=KycStatus.NOT_SUBMITTED, status=status)
    for path, body in (("/payments/nonsense/simulate", b"{"), ("/payments/PAY-20250131-AAAAAA/simulate", b"{}")):
        answer = await api.client.post(path, content=body, headers=shop.as_live)
        assert_refused(answer, 403, "SANDBOX_ONLY")


@pytest.mark.rule("payments.3", "BUSINESS_RESTRICTED", "GATEWAY_NOT_FOUND", "NO_GATEWAY_AVAILABLE")
async def test_refusals_of_initiate_in_order_of_precedence(api: Api) -> None:
    restricted = await api.open_shop(status=BusinessStatus.RESTRICTED)
    unapproved = await api.open_shop(kyc=KycStatus.PENDING)
    shop = await api.open_shop()
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
        (shop.as_live, {"amount": 100}, 503, "NO_GATEWAY_AVAILABLE"),
    ):
        answer = await api.client.post("/payments/initiate", json=body, headers=headers)
        assert_refused(answer, status, code)
    assert (await api.client.post("/payments/initiate", json={"amount": 100}, headers=unapproved.as_sandbox)).is_success


@pytest.mark.rule("payments.4")
async def test_refusals_of_read_and_simulate_in_order_of_precedence(api: Api) -> None:
    restricted = await api.open_shop(status=BusinessStatus.SUSPENDED)
    shop = await api.open_shop()
    reference = (await api.initiate(shop))["reference"]
    for headers, named, body, status, code in (
        ({}, "x", {}, 401, "UNAUTHORIZED"),
        (bearer(shop.public), "x", {}, 401, "INVALID_API_KEY"),
        (restricted.as_sandbox, "x", {}, 403, "BUSINESS_RESTRICTED"),
        (shop.as_sandbox, "x", {}, 400, "INVALID_REFERENCE"),
        (shop.as_sandbox, reference[:-6] + "ZZZZZZ", {}, 400, "VALIDATION_ERROR"),
        (shop.as_sandbox, reference[:-6] + "ZZZZZZ", {"outcome": "SUCCESS"}, 404, "PAYMENT_NOT_FOUND"),
    ):
        answer = await api.client.post(f"/payments/{named}/simulate", json=body, headers=headers)
        assert_refused(answer, status, code)
        if body == {} and code != "VALIDATION_ERROR":
            assert_refused(await api.client.get(f"/payments/{named}", headers=headers), status, code)
