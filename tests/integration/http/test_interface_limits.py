"""Every limit of the interface over HTTP: a request at the limit is taken, one past it is refused by name."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer

pytestmark = pytest.mark.anyio
ADMIN = bearer(admin_token())
CREDENTIALS_CAP = 2_500_000  # bytes of the body


def a_payment(**fields: Any) -> dict[str, Any]:
    return {"amount": 100, **fields}


def url_of(length: int) -> str:
    return "https://shop.example/".ljust(length, "a")


def address_of(length: int) -> str:
    return "a" * 64 + "@" + ".".join(["d" * 61] * 3) + "." + "c" * (length - 251)


def nested(levels: int) -> Any:
    return {"a": nested(levels - 1)} if levels > 1 else {}


def bytes_of(size: int) -> dict[str, str]:
    return {"a": "x" * (size - len('{"a":""}'))}


# The bodies at the limit, the bodies past it, the field that is named.
PAYMENT: dict[str, tuple[list[Any], list[Any], str]] = {
    "amount": ([{"amount": 100}, {"amount": 2**53 - 1}], [{"amount": 99}, {"amount": 2**53}], "amount"),
    "currency": ([a_payment(currency="NGN")], [a_payment(currency="USD"), a_payment(currency="ngn")], "currency"),
    "email": (
        [a_payment(customerEmail=address_of(254)), a_payment(customerEmail="ọjà@bücher.example")],
        [a_payment(customerEmail=address_of(255)), a_payment(customerEmail="ọjà @bücher.example")],
        "customerEmail",
    ),
    "name": ([a_payment(customerName="n" * 200)], [a_payment(customerName="n" * 201)], "customerName"),
    "phone": ([a_payment(customerPhone="1" * 32)], [a_payment(customerPhone="1" * 33)], "customerPhone"),
    "callback": (
        [a_payment(callbackUrl=url_of(2048)), a_payment(callbackUrl="http://bücher.example/ọjà?x=a|b")],
        [a_payment(callbackUrl=url_of(2049)), a_payment(callbackUrl="https://ada@bücher.example/")],
        "callbackUrl",
    ),
    "webhook": (
        [a_payment(webhookUrl=url_of(2048)), a_payment(webhookUrl="https://ọjà.example/")],
        [a_payment(webhookUrl=url_of(2049)), a_payment(webhookUrl="http://shop.example/")],
        "webhookUrl",
    ),
    "metadata keys": (
        [a_payment(metadata={f"k{n}": n for n in range(50)})],
        [a_payment(metadata={f"k{n}": n for n in range(51)})],
        "metadata",
    ),
    "metadata key": ([a_payment(metadata={"k" * 100: 1})], [a_payment(metadata={"k" * 101: 1})], "metadata"),
    "metadata depth": ([a_payment(metadata=nested(5))], [a_payment(metadata=nested(6))], "metadata"),
    "metadata size": ([a_payment(metadata=bytes_of(16_384))], [a_payment(metadata=bytes_of(16_385))], "metadata"),
    "idempotency key": (
        [a_payment(idempotencyKey="k"), a_payment(idempotencyKey="k" * 255)],
        [a_payment(idempotencyKey=""), a_payment(idempotencyKey="k" * 256)],
        "idempotencyKey",
    ),
}
GATEWAY: dict[str, tuple[list[Any], list[Any], str]] = {
    "slug": (
        [{"slug": "ab", "name": "Acme"}, {"slug": "a" * 50, "name": "Acme"}],
        [{"slug": "a", "name": "Acme"}, {"slug": "a" * 51, "name": "Acme"}, {"slug": "A-b", "name": "Acme"}],
        "slug",
    ),
    "name": (
        [{"slug": "one", "name": "Ab"}, {"slug": "two", "name": "n" * 100}],
        [{"slug": "three", "name": "A"}, {"slug": "four", "name": "n" * 101}],
        "name",
    ),
    "description": (
        [{"slug": "one", "name": "Acme", "description": "d" * 1000}],
        [{"slug": "two", "name": "Acme", "description": "d" * 1001}],
        "description",
    ),
    "order": (
        [{"slug": "one", "name": "Acme", "displayOrder": 0}],
        [{"slug": "two", "name": "Acme", "displayOrder": -1}],
        "displayOrder",
    ),
}
Send = Callable[[Any], Any]


async def at_and_past(send: Send, table: dict[str, tuple[list[Any], list[Any], str]], status: int) -> None:
    for name, (at, past, field) in table.items():
        for body in at:
            answer: httpx.Response = await send(body)
            assert answer.status_code == status, (name, answer.text)
        for body in past:
            assert_refused(await send(body), 400, "VALIDATION_ERROR", field)


async def gateway_id(api: Api, slug: str = "provider_a") -> str:
    listed = (await api.client.get("/admin/gateways", headers=ADMIN)).json()["data"]
    return str(next(gateway["id"] for gateway in listed if gateway["slug"] == slug))


async def an_open_shop(api: Api) -> Shop:
    await api.open_gateways()
    return await api.open_shop()


@pytest.mark.rule("limits.1", "limits.2", "limits.3")
async def test_limits_of_initiate_and_of_the_test_payment(api: Api) -> None:
    shop = await an_open_shop(api)
    await at_and_past(
        lambda body: api.client.post("/payments/initiate", json=body, headers=shop.as_sandbox), PAYMENT, 201
    )
    # A test payment takes fewer fields, and the key of each business and environment is one namespace.
    other = await api.open_shop()
    path = f"{other.path}/test-payment"
    fewer = {name: PAYMENT[name] for name in PAYMENT if name not in ("currency", "phone", "webhook")}
    await at_and_past(lambda body: api.client.post(path, json=body, headers=other.as_owner), fewer, 201)


@pytest.mark.rule("limits.15", "POST /admin/gateways", "PATCH /admin/gateways/{gatewayId}")
async def test_limits_of_a_gateway(api: Api) -> None:
    await api.open_gateways()
    sent = 0

    async def create(body: dict[str, Any]) -> httpx.Response:
        nonlocal sent
        sent += 1
        # Another slug for each, but for those that are about the slug.
        slug = body["slug"] if body["slug"][0] in "aA" else f"gateway-{sent}"
        return await api.client.post("/admin/gateways", json={**body, "slug": slug}, headers=ADMIN)

    await at_and_past(create, GATEWAY, 201)
    path = f"/admin/gateways/{await gateway_id(api)}"
    for name, (at, past, field) in GATEWAY.items():
        if name != "slug":
            bodies = [[{field: body[field]} for body in part] for part in (at, past)]
            change = {name: (bodies[0], bodies[1], field)}
            await at_and_past(lambda body: api.client.patch(path, json=body, headers=ADMIN), change, 200)


@pytest.mark.rule("limits.14", "limits.24")
async def test_limits_of_credentials(api: Api) -> None:
    await api.open_gateways()
    path = f"/admin/gateways/{await gateway_id(api)}/credentials"

    async def send(credentials: Any) -> httpx.Response:
        return await api.client.patch(path, json={"credentials": credentials}, headers=ADMIN)

    for at in ({"a": ""}, {f"k{n}": "v" * 4000 for n in range(50)}):
        answer = await send(at)
        assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert_refused(await send({}), 400, "VALIDATION_ERROR", "credentials")
    assert_refused(await send({f"k{n}": "v" for n in range(51)}), 400, "VALIDATION_ERROR", "credentials")
    assert_refused(await send({"key": "v" * 4001}), 400, "VALIDATION_ERROR", "credentials.key")
    headers = ADMIN | {"Content-Type": "application/json"}
    fits = b'{"credentials":{"a":"b"}}'.ljust(CREDENTIALS_CAP)
    assert (await api.client.patch(path, content=fits, headers=headers)).status_code == 200
    assert_refused(await api.client.patch(path, content=fits + b" ", headers=headers), 413, "PAYLOAD_TOO_LARGE")


@pytest.mark.rule("limits.16")
async def test_limits_of_checkout_settings(api: Api) -> None:
    shop = await an_open_shop(api)
    path = f"{shop.path}/gateways/{await gateway_id(api)}"
    table: dict[str, tuple[list[Any], list[Any], str]] = {
        "display name": ([{"displayName": "d" * 50}], [{"displayName": "d" * 51}], "displayName"),
        "order": ([{"displayOrder": 0}], [{"displayOrder": -1}], "displayOrder"),
        "others": ([{}], [{"slug": "x"}], "slug"),
    }
    await at_and_past(lambda body: api.client.patch(path, json=body, headers=shop.as_owner), table, 200)


@pytest.mark.rule("limits.17")
async def test_a_reorder_takes_a_hundred_gateways_and_not_one_more(api: Api) -> None:
    shop = await an_open_shop(api)
    for number in range(100):
        made = await api.client.post("/admin/gateways", json={"slug": f"g{number:03}", "name": "Acme"}, headers=ADMIN)
        path = f"/admin/gateways/{made.json()['data']['id']}/enable"
        assert (await api.client.post(path, headers=ADMIN)).status_code == 200
    listed = (await api.client.get(f"{shop.path}/gateways", headers=shop.as_owner)).json()["data"]
    order = [
        {"gatewayId": one["id"], "displayOrder": place} for place, one in enumerate(listed) if not one["isBuiltIn"]
    ]
    path = f"{shop.path}/gateways/reorder"
    taken = await api.client.post(path, json={"order": order[:100]}, headers=shop.as_owner)
    assert taken.status_code == 200, taken.text
    assert len(order) == 101
    for wrong in ([], order):
        refused = await api.client.post(path, json={"order": wrong}, headers=shop.as_owner)
        assert_refused(refused, 400, "VALIDATION_ERROR", "order")


@pytest.mark.rule("limits.18", "limits.19", "GET /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries")
async def test_limits_of_pages_and_search(api: Api) -> None:
    shop = await an_open_shop(api)
    endpoint = await api.add_endpoint(shop)
    merchants = (f"/admin/gateways/{await gateway_id(api)}/merchants", ADMIN)
    deliveries = (f"{shop.path}/webhooks/{endpoint['id']}/deliveries", shop.as_owner)
    for path, headers in (merchants, deliveries):
        first = (await api.client.get(path, headers=headers)).json()
        assert (first["meta"]["page"], first["meta"]["perPage"]) == (1, 20)
        for query in ({"perPage": 1}, {"perPage": 100}, {"page": 1}):
            assert (await api.client.get(path, params=query, headers=headers)).status_code == 200
        for name, value in (("perPage", 0), ("perPage", 101), ("page", 0), ("page", -1)):
            answer = await api.client.get(path, params={name: value}, headers=headers)
            assert_refused(answer, 400, "VALIDATION_ERROR", name)
    path, headers = merchants
    assert (await api.client.get(path, params={"search": "s" * 100}, headers=headers)).status_code == 200
    answer = await api.client.get(path, params={"search": "s" * 101}, headers=headers)
    assert_refused(answer, 400, "VALIDATION_ERROR", "search")


@pytest.mark.rule("limits.20", "limits.21")
async def test_limits_of_keys_and_endpoints(api: Api) -> None:
    shop = await api.open_shop(keys=())
    keys: dict[str, tuple[list[Any], list[Any], str]] = {
        "name": (
            [{"environment": "SANDBOX", "name": "n" * length} for length in (2, 100)],
            [{"environment": "SANDBOX", "name": "n" * length} for length in (1, 101)],
            "name",
        ),
        "environment": ([], [{"environment": "sandbox", "name": "Server"}, {"name": "Server"}], "environment"),
        "others": ([], [{"environment": "SANDBOX", "name": "Server", "extra": 1}], "extra"),
    }
    await at_and_past(
        lambda body: api.client.post(f"{shop.path}/api-keys", json=body, headers=shop.as_owner), keys, 201
    )
    live = {"url": url_of(40), "environment": "LIVE"}
    endpoints: dict[str, tuple[list[Any], list[Any], str]] = {
        "description": ([{**live, "description": "d" * 200}], [{**live, "description": "d" * 201}], "description"),
        "url": (
            [{**live, "url": url_of(2048)}],
            [{**live, "url": url_of(2049)}, {**live, "url": "http://shop.example/"}],
            "url",
        ),
    }
    await at_and_past(
        lambda body: api.client.post(f"{shop.path}/webhooks", json=body, headers=shop.as_owner), endpoints, 201
    )


@pytest.mark.rule("limits.6", "limits.8", "KEY_LIMIT_REACHED", "WEBHOOK_LIMIT_REACHED")
async def test_the_fifth_key_and_endpoint_are_made_and_the_sixth_is_not(api: Api) -> None:
    shop = await api.open_shop(keys=())
    for environment in ("SANDBOX", "LIVE"):
        body = {"environment": environment, "name": "Server"}
        answers = [await api.client.post(f"{shop.path}/api-keys", json=body, headers=shop.as_owner) for _ in range(6)]
        assert [answer.status_code for answer in answers[:5]] == [201] * 5
        assert_refused(answers[5], 409, "KEY_LIMIT_REACHED")
    made = []
    for number in range(6):
        body = {"url": url_of(40), "environment": ("SANDBOX", "LIVE")[number % 2]}
        made.append(await api.client.post(f"{shop.path}/webhooks", json=body, headers=shop.as_owner))
    assert [answer.status_code for answer in made[:5]] == [201] * 5
    assert_refused(made[5], 409, "WEBHOOK_LIMIT_REACHED")
