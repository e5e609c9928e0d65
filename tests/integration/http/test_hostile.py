"""Hostile forms of bodies past their caps, paths and uploads of every route: a 4xx in the envelope, never a 500.

The table is generated from the routes' own declarations, so a new route is tried without a new line here. Fields are
tried in `test_hostile_grid.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.openapi.operations import Route, routes_of
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, Shop, admin_token, an_api, assert_refused, bearer

pytestmark = pytest.mark.anyio
ROUTES = routes_of(api_routes())
AT_ONCE = 16
NO_LIMITS = replace(
    SETTINGS,
    unknown_reference_limit=10**6,
    webhook_rate_limit=10**6,
    reference_rate_limit=10**6,
    refused_body_limit=10**6,
)

SEGMENTS = ["%00", "%ff", "%0d%0aX:1", "%27%20OR%201=1--", "x" * 1000, "PAY-20250131-AAAAAA%0a"]


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[Api]:
    async with an_api(services_over(store, NO_LIMITS)) as api:
        yield api


def path_of(route: Route, shop: Shop, reference: str, given: dict[str, str] | None = None) -> str:
    path = route.path
    known = {"businessId": shop.business.id, "reference": reference} | (given or {})
    for name in route.parameters:
        path = path.replace("{" + name + "}", known.get(name, f"{name}_unknown"))
    return path


def credential(route: Route, shop: Shop) -> dict[str, str]:
    return {
        "adminBearer": bearer(admin_token()),
        "merchantBearer": shop.as_owner,
        "secretKey": shop.as_sandbox,
        None: {},
    }[route.operation.guard.scheme]


def in_envelope(answer: httpx.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/json", answer.text
    body = answer.json()
    assert set(body) == {"success", "error"}, answer.text
    assert body["success"] is False
    assert set(body["error"]) <= {"code", "message", "field"}
    error: dict[str, Any] = body["error"]
    return error


async def in_parallel(send: Callable[..., Awaitable[None]], cases: list[tuple[Any, ...]]) -> None:
    """Sends the cases a few at a time; the first failure ends it."""
    for at in range(0, len(cases), AT_ONCE):
        await asyncio.gather(*(send(*case) for case in cases[at : at + AT_ONCE]))


@pytest.mark.rule("limits.23")
async def test_every_route_with_a_body_refuses_one_past_its_own_cap(api: Api) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop))["reference"]
    routes = [route for route in ROUTES if route.operation.body_max]
    assert {route.operation.body_max for route in routes if route.id == "processPayment"} == {1024}
    for route in routes:
        path = path_of(route, shop, reference)
        headers = credential(route, shop) | {"Content-Type": "application/json"}
        over = b" " * (route.operation.body_max + 1)
        assert_refused(
            await api.client.request(route.method, path, content=over, headers=headers), 413, "PAYLOAD_TOO_LARGE"
        )


async def test_hostile_path_segments_are_refused(api: Api) -> None:
    shop = await api.open_shop()

    async def send(route: Route, name: str, segment: str) -> None:
        answer = await api.client.request(
            route.method.upper(),
            path_of(route, shop, "PAY-20250131-AAAAAA", {name: segment}),
            content=b"{}" if route.operation.body is not None else None,
            headers=credential(route, shop) | {"Content-Type": "application/json"},
        )
        context = f"{route.method} {route.path} {name}={segment[:40]}: {answer.status_code} {answer.text[:200]}"
        assert 400 <= answer.status_code < 500, context
        in_envelope(answer)

    await in_parallel(
        send, [(route, name, segment) for route in ROUTES for name in route.parameters for segment in SEGMENTS]
    )
