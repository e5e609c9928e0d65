"""Every limit of the interface over HTTP: a request at the limit is taken, one past it is refused by name, and the
description says so."""

import re
from itertools import count
from typing import Any

import httpx
import pytest

from payagg.entrypoints.http.app import api_routes
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer
from tools.openapi.document import document

ADMIN = bearer(admin_token())
CREDENTIALS_CAP = 2_500_000  # bytes of the body
PROVIDER = "/admin/gateways/gw_provider_a"
DOCUMENT = document(api_routes())
# By field: the values at the limit, and those past it, of which the description refuses the first.
Table = dict[str, tuple[list[Any], list[Any]]]


def url_of(length: int) -> str:
    return "https://shop.example/".ljust(length, "a")


def address_of(length: int) -> str:
    return "a" * 64 + "@" + ".".join(["d" * 61] * 3) + "." + "c" * (length - 251)


def nested(levels: int) -> Any:
    return {"a": nested(levels - 1)} if levels > 1 else {}


def metadata(keys: int, key: int, levels: int, size: int) -> list[Any]:
    return [{f"k{n}": n for n in range(keys)}, {"k" * key: 1}, nested(levels), {"a": "x" * (size - len('{"a":""}'))}]


PAYMENT: Table = {
    "amount": ([100, 2**53 - 1], [99, 2**53]),
    "currency": (["NGN"], ["USD", "ngn"]),
    "customerEmail": ([address_of(254), "ọjà@bücher.example"], [address_of(255), "ọjà @bücher.example"]),
    "customerName": (["n" * 200], ["n" * 201]),
    "customerPhone": (["1" * 32], ["1" * 33]),
    "callbackUrl": ([url_of(2048), "http://bücher.example/ọjà?x=a|b"], [url_of(2049), "https://ada@bücher.example/"]),
    "webhookUrl": ([url_of(2048), "https://ọjà.example/"], [url_of(2049), "http://shop.example/"]),
    "metadata": (metadata(50, 100, 5, 16_384), metadata(51, 101, 6, 16_385)),
    "idempotencyKey": (["k", "k" * 255], ["", "k" * 256]),
}
GATEWAY: Table = {
    "slug": (["ab", "a" * 50], ["a", "a" * 51, "A-b"]),
    "name": (["Ab", "n" * 100], ["A", "n" * 101]),
    "description": (["d" * 1000], ["d" * 1001]),
    "displayOrder": ([0], [-1]),
}
CHOICE: Table = {"displayName": (["d" * 50], ["d" * 51]), "displayOrder": ([0], [-1]), "slug": ([], ["x"])}
KEY: Table = {
    "name": (["n" * 2, "n" * 100], ["n", "n" * 101]),
    "environment": ([], ["sandbox", None]),
    "extra": ([], [1]),
}
ENDPOINT: Table = {
    "description": (["d" * 200], ["d" * 201]),
    "url": ([url_of(2048)], [url_of(2049), "http://shop.example/"]),
}


def is_described(method: str, path: str, body: dict[str, Any]) -> bool:
    """Whether the description lets `body` pass."""
    from jsonschema import Draft202012Validator  # takes a second

    template = re.sub("/gw_[a-z_]+", "/{gatewayId}", re.sub("/biz_[0-9a-f]+", "/{businessId}", path))
    operation = DOCUMENT["paths"][template][method.lower()]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return bool(Draft202012Validator({**schema, "components": DOCUMENT["components"]}).is_valid(body))


async def at_and_past(
    api: Api, method: str, path: str, headers: dict[str, str], table: Table, status: int = 200, **others: Any
) -> None:
    """Each value alone beside the `others`, of which a slug is another one each time."""
    numbers = count()
    for field, (at, past) in table.items():
        for value in [*at, *past]:
            fresh = {"slug": f"gateway-{next(numbers)}"} if "slug" in others else {}
            body = {**others, **fresh, field: value}
            answer = await api.client.request(method, path, json=body, headers=headers)
            if value in at or value is past[0]:
                assert is_described(method, path, body) == (value in at), body
            if value in at:
                assert answer.status_code == status, (field, answer.text)
            else:
                assert_refused(answer, 400, "VALIDATION_ERROR", field)


@pytest.mark.rule("limits.1", "limits.2", "limits.3")
async def test_limits_of_initiate_and_of_the_test_payment(api: Api, shop: Shop) -> None:
    await at_and_past(api, "POST", "/payments/initiate", shop.as_sandbox, PAYMENT, 201, amount=100)
    # A test payment takes fewer fields, and the key of each business and environment is one namespace.
    other = await api.open_shop()
    fewer = {name: row for name, row in PAYMENT.items() if name not in ("currency", "customerPhone", "webhookUrl")}
    await at_and_past(api, "POST", f"{other.path}/test-payment", other.as_owner, fewer, 201, amount=100)


@pytest.mark.rule("limits.14", "limits.15", "limits.24", "POST /admin/gateways", "PATCH /admin/gateways/{gatewayId}")
async def test_limits_of_a_gateway_and_its_credentials(api: Api) -> None:
    await at_and_past(api, "POST", "/admin/gateways", ADMIN, GATEWAY, 201, slug="", name="Acme")
    await at_and_past(api, "PATCH", PROVIDER, ADMIN, {name: row for name, row in GATEWAY.items() if name != "slug"})
    most = {f"k{n}": "v" * 4000 for n in range(50)}
    table: Table = {"credentials": ([{"a": ""}, most], [{}, {f"k{n}": "v" for n in range(51)}])}
    await at_and_past(api, "PATCH", f"{PROVIDER}/credentials", ADMIN, table)
    answer = await api.client.patch(f"{PROVIDER}/credentials", json={"credentials": {"key": "v" * 4001}}, headers=ADMIN)
    assert_refused(answer, 400, "VALIDATION_ERROR", "credentials.key")
    fits = b'{"credentials":{"a":"b"}}'.ljust(CREDENTIALS_CAP)
    for body, status in ((fits, 200), (fits + b" ", 413)):
        headers = ADMIN | {"Content-Type": "application/json"}
        assert (await api.client.patch(f"{PROVIDER}/credentials", content=body, headers=headers)).status_code == status


@pytest.mark.rule("limits.16", "limits.20", "limits.21")
async def test_limits_of_settings_keys_and_endpoints(api: Api) -> None:
    shop = await api.open_shop(keys=())
    await at_and_past(api, "PATCH", f"{shop.path}/gateways/gw_provider_a", shop.as_owner, CHOICE)
    key = {"environment": "SANDBOX", "name": "Server"}
    await at_and_past(api, "POST", f"{shop.path}/api-keys", shop.as_owner, KEY, 201, **key)
    live = {"url": url_of(40), "environment": "LIVE"}
    await at_and_past(api, "POST", f"{shop.path}/webhooks", shop.as_owner, ENDPOINT, 201, **live)


@pytest.mark.rule("limits.18", "limits.19", "GET /admin/gateways/{gatewayId}/merchants")
@pytest.mark.rule("GET /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries")
async def test_limits_of_pages_and_search(api: Api, shop: Shop) -> None:
    endpoint = await api.add_endpoint(shop)

    async def asked(listing: tuple[str, dict[str, str]], **query: Any) -> httpx.Response:
        return await api.client.get(listing[0], params=query, headers=listing[1])

    merchants = (f"{PROVIDER}/merchants", ADMIN)
    for listing in (merchants, (f"{shop.path}/webhooks/{endpoint['id']}/deliveries", shop.as_owner)):
        first = (await asked(listing)).json()
        assert (first["meta"]["page"], first["meta"]["perPage"]) == (1, 20)
        for query in ({"perPage": 1}, {"perPage": 100}, {"page": 1}):
            assert (await asked(listing, **query)).status_code == 200
        for name, value in (("perPage", 0), ("perPage", 101), ("page", 0), ("page", -1)):
            assert_refused(await asked(listing, **{name: value}), 400, "VALIDATION_ERROR", name)
    found = (await asked(merchants, search=shop.business.name.upper(), perPage=1)).json()
    assert ([one["businessId"] for one in found["data"]], found["meta"]["total"]) == ([shop.business.id], 1)
    nothing = await asked(merchants, search="%" * 100)
    assert (nothing.status_code, nothing.json()["data"]) == (200, [])
    assert_refused(await asked(merchants, search="s" * 101), 400, "VALIDATION_ERROR", "search")
