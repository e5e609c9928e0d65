"""One hostile value in an otherwise valid call, of every field, path and body of every route: a 4xx in the envelope.

The tables are generated from the routes' own declarations (`tests/integration/http/hostile_cells.py`), so a new route
is tried without a new line here.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from payagg.entrypoints.http.app import api_routes
from tests.integration.http.hostile_cells import HostileCell, hostile_cells
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer, refusal
from tools.openapi.document import document
from tools.openapi.operations import Route, routes_of

ROUTES = {route.id: route for route in routes_of(api_routes())}
AT_ONCE = 16
SEGMENTS = ("%00", "%ff", "x" * 1000, "PAY-20250131-AAAAAA%0a")
NO_REFERENCES = (
    *("PAY-20250131-AAAAA%00", "%ff%fe", "%ed%a0%80", "7" * 5000, "%D9%A2" * 2000, "PAY%2F20250131%2fAAAAAA"),
    *("a%2f%2fb", "%3F", "PAY-20250131-aaaaaa", "PAY-20250131-AAAAA", "PAY-2025013-AAAAAAA", "PAY-٢٠٢٥٠١٣١-AAAAAA"),
)
# Anything that stands for a valid request's secrets, or for a hostile one's.
SECRET_WORDS = ("sk_live_...", "sk_test_...", "4242 4242")
# Where browsers and providers append parameters of their own.
OPEN = {
    *("getPublicPayment", "listPaymentOptions", "processPayment", "verifyPayment", "getGatewayLogo"),
    *(id for id in ROUTES if id.startswith("receive")),
}
UNKNOWN = "custommerEmail"


@pytest.fixture(scope="module")
async def shop(api: Api) -> Shop:
    return await api.open_shop()


@pytest.fixture(scope="module")
async def places(api: Api, shop: Shop) -> dict[str, str]:
    """An id that exists for each path parameter but those that take a history."""
    return {
        "businessId": shop.business.id,
        "endpointId": (await api.add_endpoint(shop))["id"],
        "gatewayId": "gw_provider_b",
        "reference": (await api.initiate(shop))["reference"],
        **dict.fromkeys(("anomalyId", "reconciliationId", "keyId", "deliveryId"), "unknown"),
    }


def credential(route: Route, shop: Shop) -> dict[str, str]:
    of = {"adminBearer": bearer(admin_token()), "merchantBearer": shop.as_owner, "secretKey": shop.as_sandbox, None: {}}
    return of[route.operation.guard.scheme]


async def in_parallel(send: Callable[..., Awaitable[None]], cases: list[tuple[Any, ...]]) -> None:
    """Sends the cases a few at a time; the first failure ends it."""
    for at in range(0, len(cases), AT_ONCE):
        await asyncio.gather(*(send(*case) for case in cases[at : at + AT_ONCE]))


def broken_rule(cell: HostileCell, status: int, error: dict[str, Any] | None, cap: int) -> str | None:
    """What the answer should have been."""
    if cell.body is not None and 0 < cap < len(cell.body):
        return None if status == 413 else "413, as it is past the cap"
    if cell.is_legal:
        return None if 200 <= status < 500 else "taken or refused"
    if cell.path.startswith("/webhooks/"):
        return None if status in (400, 503) and error is not None else "refused as unsigned"
    codes = {"VALIDATION_ERROR", "INVALID_REFERENCE"} if cell.must_name == "reference" else {"VALIDATION_ERROR"}
    if status != 400 or error is None or error["code"] not in codes:
        return "a validation error"
    if cell.must_name and re.split(r"[.\[]", error.get("field", ""))[0] != cell.must_name:
        return f"an error that names {cell.must_name}"
    return None


def with_inputs(described: dict[str, Any]) -> set[str]:
    """The operations that take a body in JSON, a query or a header."""
    operations = [operation for each in described["paths"].values() for operation in each.values()]
    return {
        operation["operationId"]
        for operation in operations
        if "application/json" in operation.get("requestBody", {}).get("content", {})
        or any(parameter["in"] != "path" for parameter in operation.get("parameters", ()))
    }


@pytest.mark.rule("access.1", "access.29", "VALIDATION_ERROR")
async def test_one_hostile_value_in_a_valid_call_is_named_or_taken_and_never_our_fault(
    api: Api, shop: Shop, places: dict[str, str]
) -> None:
    described = document(api_routes())
    cells = list(hostile_cells(described))
    assert {cell.operation for cell in cells} == with_inputs(described)
    faults: list[str] = []
    answered: Counter[int] = Counter()
    untouched = f"/payments/{(await api.initiate(shop, amount=777_000))['reference']}"
    before = (await api.client.get(untouched, headers=shop.as_sandbox)).json()

    async def send(cell: HostileCell) -> None:
        route = ROUTES[cell.operation]
        headers: dict[str, Any] = credential(route, shop)
        if cell.body is not None:
            headers["Content-Type"] = "application/json"
        path = cell.path.format_map(places) + (f"?{cell.query}" if cell.query else "")
        headers |= cell.headers
        answer = await api.client.request(cell.method.upper(), path, content=cell.body, headers=headers)
        answered[answer.status_code] += 1
        error = None
        if answer.status_code >= 400:
            refusal(answer)
            error = answer.json()["error"]
        wanted = broken_rule(cell, answer.status_code, error, route.operation.body_max)
        secrets = [word for word in (*SECRET_WORDS, shop.sandbox, shop.live) if word in answer.text]
        if wanted or (secrets and error is not None):
            must, was = wanted or "answered without secrets", f"{answer.status_code} {answer.text[:200]}"
            faults.append(f"{cell.operation}: {cell.says} must be {must}, and was {was}")

    await in_parallel(send, [(cell,) for cell in cells])
    assert (await api.client.get(untouched, headers=shop.as_sandbox)).json() == before
    assert faults == []
    # Most are refused; that some are taken shows that the rest of each request is valid.
    assert answered[400] > len(cells) / 2
    assert answered[200] + answered[201] > 100, answered


@pytest.mark.rule("limits.23", "PAYLOAD_TOO_LARGE")
async def test_every_route_with_a_body_refuses_one_past_its_cap(api: Api, shop: Shop, places: dict[str, str]) -> None:
    assert ROUTES["processPayment"].operation.body_max == 1024
    for route in [route for route in ROUTES.values() if route.operation.body_max]:
        headers = credential(route, shop) | {"Content-Type": "application/json"}
        over, path = b" " * (route.operation.body_max + 1), route.path.format_map(places)
        answer = await api.client.request(route.method, path, content=over, headers=headers)
        assert_refused(answer, 413, "PAYLOAD_TOO_LARGE")
    fits = b'{"amount":100}'.ljust(64 * 1024)
    headers = shop.as_sandbox | {"Content-Type": "application/json"}
    assert (await api.client.post("/payments/initiate", content=fits, headers=headers)).status_code == 201
    assert_refused(await api.client.post("/payments/initiate", content=fits + b" "), 401, "UNAUTHORIZED")


@pytest.mark.rule("payments.24", "INVALID_REFERENCE")
async def test_hostile_path_segments_are_refused(api: Api, shop: Shop, places: dict[str, str]) -> None:
    async def send(route: Route, name: str, segment: str) -> None:
        answer = await api.client.request(
            route.method.upper(),
            route.path.format_map({**places, name: segment}),
            content=b"{}" if route.operation.body is not None else None,
            headers=credential(route, shop) | {"Content-Type": "application/json"},
        )
        context = f"{route.method} {route.path} {name}={segment[:40]}: {answer.status_code} {answer.text[:200]}"
        assert 400 <= answer.status_code < 500, context
        assert name != "reference" or refusal(answer)[:2] == (400, "INVALID_REFERENCE"), context
        refusal(answer)

    cases = [(route, name, one) for route in ROUTES.values() for name in route.parameters for one in SEGMENTS]
    named = [route for route in ROUTES.values() if "reference" in route.parameters]
    cases += [(route, "reference", one) for route in named for one in NO_REFERENCES]
    await in_parallel(send, cases)


@pytest.mark.rule("access.28")
async def test_an_unknown_query_parameter_is_refused_by_name_but_on_open_routes(
    api: Api, shop: Shop, places: dict[str, str]
) -> None:
    assert {id for id, route in ROUTES.items() if route.operation.takes_any_query} == OPEN
    assert all(ROUTES[id].path.startswith(("/public/", "/webhooks/")) for id in OPEN)

    async def asked(route: Route, query: dict[str, str]) -> httpx.Response:
        path = route.path.format_map(places)
        return await api.client.request(route.method, path, headers=credential(route, shop), params=query)

    for id in sorted(ROUTES.keys() - OPEN):
        known = ROUTES[id].operation.query_names
        answer = await asked(ROUTES[id], {**dict.fromkeys(known, "x"), UNKNOWN: "ada@example.com"})
        assert refusal(answer) == (400, "VALIDATION_ERROR", UNKNOWN), id
        for name in known:
            assert name in answer.json()["error"]["message"], id
    for id in sorted(OPEN):
        plain, appended = await asked(ROUTES[id], {}), await asked(ROUTES[id], {"utm_source": "mail", "fbclid": "x"})
        assert appended.status_code == plain.status_code, id
        assert appended.json().get("error") == plain.json().get("error"), id
    long = ("x" * 500 + "=1", "x" * 100)
    odd = (("a%00b=1", "a?b"), ("%ff=1", "?"), ("=1", ""), ("status=FAILED&%E2%80%AEa", "?a"))
    for query, field in (("page=1", "page"), long, *odd):
        answer = await api.client.get(f"/payments?{query}", headers=shop.as_sandbox)
        assert refusal(answer) == (400, "VALIDATION_ERROR", field)
    # Who asks is looked at before what is asked.
    assert_refused(await api.client.get("/payments?nonsense=1"), 401, "UNAUTHORIZED")
    assert_refused(await api.client.get("/payments/x?nonsense=1", headers=shop.as_sandbox), 400, "INVALID_REFERENCE")
