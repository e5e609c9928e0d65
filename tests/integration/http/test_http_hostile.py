"""Hostile forms in every body, path and query field of every route: a 4xx in the envelope, never a 500.

The table is generated from the routes' own declarations, so a new route or field is tried without a new line here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import msgspec
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

ANY_TYPE = [b"true", b"7", b"-1", b"1.5", b"1e2", b'"text"', b"[[]]", b"[null]", b'{"$gt":{}}', b"9" * 300, b'""']
UNKEEPABLE = [
    b'"a\\u0000b"',
    b'"\\ud800"',
    b'"\\udfffx"',
    b"1e400",
    b"[" * 40 + b"]" * 40,
    b'{"a":' * 40 + b"1" + b"}" * 40,
    b'{"twice":1,"twice":2}',
]
BROKEN = [
    b"",
    b"null",
    b"[]",
    b'"x"',
    b"{",
    b"{]",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b'{"a":NaN}',
    b'{"a":' + b"9" * 5000 + b"}",
    b"[" * 50_000,
    b'{"a":"\xff"}',
    b'{"a":1,"a":2}',
    b"<xml/>",
]
SEGMENTS = [
    "%00", "a%00b", "%ff", "%c0%80", "%ed%a0%80", "%0d%0aX:1", "%27%20OR%201=1--", "%7b%7b7*7%7d%7d", "*", "%25", "-1",
    "%F0%9F%92%A9", "x" * 1000, "PAY-20250131-AAAAAA%0a", "%22%3E%3Cscript%3E", "null",
]  # fmt: skip
QUERIES = {
    "page": ["0", "-1", "1.0", "1e1", "abc", "", "%00", "1%00", "٣", "999999999999999999", "9" * 400, "1&page=2"],
    "perPage": ["0", "101", "-1", "x", "", "20%20", "9" * 400, "20&perPage=20"],
    "search": ["x" * 101, "%00", "a%00b", "%ff", "%ed%a0%80", "a&search=b"],
}


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


def is_accepted(value: bytes, kind: Any) -> bool:
    try:
        msgspec.json.decode(value, type=kind)
    except msgspec.MsgspecError:
        return False
    return True


def bodies(route: Route) -> Iterator[tuple[bytes, str | None]]:
    """Every hostile body of the route and the field that must be named; None = no one field is at fault."""
    for broken in BROKEN:
        yield broken, None
    for field in msgspec.structs.fields(route.operation.body):
        name = field.encode_name
        key = json.dumps(name).encode()
        wrong = [value for value in ANY_TYPE if not is_accepted(value, field.type)]
        for value in [*wrong, *UNKEEPABLE]:
            yield b"{" + key + b":" + value + b"}", name
        yield b"{" + key + b":null," + key + b":null}", name


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


async def test_hostile_bodies_are_validation_errors_that_name_the_field(api: Api) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop))["reference"]

    async def send(route: Route, body: bytes, field: str | None) -> None:
        answer = await api.client.request(
            route.method.upper(),
            path_of(route, shop, reference),
            content=body,
            headers=credential(route, shop) | {"Content-Type": "application/json"},
        )
        context = f"{route.method} {route.path} {body[:120]!r}: {answer.status_code} {answer.text[:200]}"
        error = in_envelope(answer)
        if len(body) > route.operation.body_max:
            assert (answer.status_code, error["code"]) == (413, "PAYLOAD_TOO_LARGE"), context
            return
        assert (answer.status_code, error["code"]) == (400, "VALIDATION_ERROR"), context
        if field is not None:
            named = error.get("field", "")
            assert named == field or named.startswith((f"{field}.", f"{field}[")), context

    with_body = [route for route in ROUTES if route.operation.body not in (None, bytes)]
    cases = [(route, body, field) for route in with_body for body, field in bodies(route)]
    assert len(with_body) >= 10
    await in_parallel(send, cases)
    read = await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)
    assert read.json()["data"]["status"] == "INITIATED"


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


async def test_hostile_queries_are_refused_or_ignored(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    gateways = (await api.client.get("/admin/gateways", headers=bearer(admin_token()))).json()["data"]

    async def send(route: Route, name: str, value: str) -> None:
        path = path_of(route, shop, "PAY-20250131-AAAAAA", {"gatewayId": gateways[0]["id"]})
        answer = await api.client.request(
            route.method.upper(), f"{path}?{name}={value}", headers=credential(route, shop)
        )
        context = f"{route.method} {route.path}?{name}={value[:40]}: {answer.status_code} {answer.text[:200]}"
        takes = name in route.operation.query or (route.operation.paginated and name in ("page", "perPage"))
        if takes:
            assert answer.status_code == 400, context
            assert in_envelope(answer).get("field") == name, context
        else:
            assert answer.status_code < 500, context

    gets = [route for route in ROUTES if route.method == "get"]
    await in_parallel(send, [(r, name, value) for r in gets for name, values in QUERIES.items() for value in values])


async def test_wrong_uploads_are_refused(api: Api) -> None:
    shop = await api.open_shop()
    for route in (route for route in ROUTES if route.operation.upload is not None):
        for headers, body in (
            ({"Content-Type": "application/json"}, b"{}"),
            ({"Content-Type": "multipart/form-data"}, b"--x\r\n\r\n--x--"),
            ({"Content-Type": "multipart/form-data; boundary=x"}, b"nonsense"),
            ({"Content-Type": "multipart/form-data; boundary=x"}, b""),
            ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x\r\n" * 2000),
            ({"Content-Type": "multipart/form-data; boundary=" + "x" * 300}, b"--x--"),
            ({"Content-Type": "multipart/form-data; boundary=" + "x" * 5000}, b"--x--"),
            ({}, b""),
        ):
            answer = await api.client.request(
                route.method.upper(),
                path_of(route, shop, "PAY-20250131-AAAAAA"),
                content=body,
                headers=credential(route, shop) | headers,
            )
            assert 400 <= answer.status_code < 500, answer.text
            in_envelope(answer)
