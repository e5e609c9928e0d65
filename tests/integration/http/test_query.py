"""Query parameters that a route does not know: refused by name, but where browsers and providers append their own."""

from typing import Any

import httpx
import pytest

from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.openapi.operations import Route, routes_of
from tests.integration.http.test_hostile import credential
from tests.support.http_world import Api, Shop, assert_refused, refusal

pytestmark = pytest.mark.anyio
ROUTES = {route.id: route for route in routes_of(api_routes())}
OPEN = {
    "getPublicPayment",
    "listPaymentOptions",
    "processPayment",
    "verifyPayment",
    "getGatewayLogo",
    *(id for id in ROUTES if id.startswith("receive")),
}
UNKNOWN = "custommerEmail"


async def asked(api: Api, shop: Shop, route: Route, query: Any) -> httpx.Response:
    names = dict.fromkeys(route.parameters, "x") | {"businessId": shop.business.id}
    if "reference" in names:
        names["reference"] = (await api.initiate(shop))["reference"]
    path = route.path.format(**names)
    return await api.client.request(route.method, path, headers=credential(route, shop), params=query)


def test_routes_without_a_credential_are_those_of_payers_logos_and_providers() -> None:
    found = {id for id, route in ROUTES.items() if route.operation.takes_any_query}
    assert found == OPEN
    assert all(ROUTES[id].path.startswith(("/public/", "/webhooks/")) for id in found)


@pytest.mark.rule("access.28")
async def test_a_parameter_that_a_route_does_not_know_is_refused_by_name(api: Api) -> None:
    shop = await api.open_shop()
    for id in sorted(ROUTES.keys() - OPEN):
        known = ROUTES[id].operation.query_names
        answer = await asked(api, shop, ROUTES[id], {**dict.fromkeys(known, "x"), UNKNOWN: "ada@example.com"})
        assert refusal(answer) == (400, "VALIDATION_ERROR", UNKNOWN), id
        for name in known:
            assert name in answer.json()["error"]["message"], id


@pytest.mark.rule("access.28")
async def test_what_a_browser_or_a_provider_appends_changes_nothing(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    for id in sorted(OPEN):
        plain = await asked(api, shop, ROUTES[id], {})
        appended = await asked(api, shop, ROUTES[id], {"utm_source": "mail", "fbclid": "x"})
        assert appended.status_code == plain.status_code, id
        assert appended.json().get("error") == plain.json().get("error"), id


async def test_an_odd_name_is_told_in_printable_characters(api: Api) -> None:
    shop = await api.open_shop()
    for query, field in (
        ("Status=FAILED", "Status"),
        ("page=1", "page"),
        ("a%00b=1", "a?b"),
        ("%ff=1", "?"),
        ("=1", ""),
        ("x" * 500 + "=1", "x" * 100),
        ("status=FAILED&%E2%80%AEa", "?a"),
    ):
        answer = await api.client.get(f"/payments?{query}", headers=shop.as_sandbox)
        assert refusal(answer) == (400, "VALIDATION_ERROR", field)


async def test_who_asks_is_looked_at_before_what_is_asked(api: Api) -> None:
    assert_refused(await api.client.get("/payments?nonsense=1"), 401, "UNAUTHORIZED")
    shop = await api.open_shop()
    answer = await api.client.get("/payments/x?nonsense=1", headers=shop.as_sandbox)
    assert_refused(answer, 400, "INVALID_REFERENCE")
