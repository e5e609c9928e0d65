"""What a request's head may hold: how many fields, how many bytes of cookies, one Host."""

import json
import re
from typing import Any

import pytest

from payagg.application import counters
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.http.uvicorn_protocol import COOKIE_MAX, FIELDS_MAX, HEAD_MAX
from tests.support.http_world import Api, raw

pytestmark = pytest.mark.anyio
LINE = b"GET /healthz HTTP/1.1\r\n"
HOST, CLOSE = b"Host: shop.example\r\n", b"Connection: close\r\n"


async def asked(api: Api, *fields: bytes, line: bytes = LINE) -> tuple[int, dict[str, Any]]:
    """Status of the answer, and its error."""
    told = await raw(api.origin, b"".join((line, *fields, CLOSE, b"\r\n")))
    head, _, body = told.partition(b"\r\n\r\n")
    return int(head[9:12]), json.loads(body).get("error", {})


async def test_a_head_has_so_many_fields_and_no_more(api: Api) -> None:
    few = b"a:\r\n" * (FIELDS_MAX - 2)
    assert (await asked(api, HOST, few))[0] == 200
    for fields in (few + b"a:\r\n", b"a:\r\n" * 20_000):
        status, error = await asked(api, HOST, fields)
        assert (status, error["code"], str(FIELDS_MAX) in error["message"]) == (431, "VALIDATION_ERROR", True)


async def test_the_cap_of_a_head_counts_what_stands_between_its_parts(api: Api) -> None:
    # Names and values alone, with the path, would fit.
    value = b"y" * (HEAD_MAX // (FIELDS_MAX - 2) - 5)
    status, error = await asked(api, HOST, b"".join(b"X-%02d: %s\r\n" % (n, value) for n in range(FIELDS_MAX - 2)))
    assert (status, str(HEAD_MAX) in error["message"]) == (400, True)


async def test_cookies_fit_eight_kilobytes_on_every_path(api: Api) -> None:
    over = (b"Cookie: a=" + b"x" * (COOKIE_MAX - 1) + b"\r\n", b"Cookie: a=%s\r\n" % (b"x" * (COOKIE_MAX // 2)) * 2)
    for path in (b"/console", b"/console/sign-in", b"/healthz", b"/api/v1/payments/context"):
        line = b"GET " + path + b" HTTP/1.1\r\n"
        told = await raw(api.origin, line + HOST + CLOSE + b"Cookie: a=" + b"x" * (COOKIE_MAX - 2) + b"\r\n\r\n")
        assert told[9:12] in (b"200", b"302", b"303", b"401")
        for fields in over:
            status, error = await asked(api, HOST, fields, line=line)
            assert (status, error["code"], error["field"]) == (431, "VALIDATION_ERROR", "Cookie")


async def test_one_host_is_asked_for_and_two_are_refused(api: Api) -> None:
    for fields in ((HOST, HOST), (HOST, b"host: other.example\r\n"), ()):
        status, error = await asked(api, *fields)
        assert (status, error["code"], error["field"]) == (400, "VALIDATION_ERROR", "Host")
    assert (await asked(api, b"Host:\r\n"))[0] == 200
    assert (await asked(api, line=b"GET /healthz HTTP/1.0\r\n"))[0] == 200


async def test_a_request_without_host_is_no_fault_of_ours_on_any_route(api: Api) -> None:
    shop = await api.open_shop()
    names = {"reference": (await api.initiate(shop))["reference"], "business_id": shop.business.id}
    counters.counts.clear()
    paths = {route.path for route in create_app(api.services).routes}
    assert len(paths) > 50
    for path in paths:
        asked_for = re.sub(r"{([a-z_]+):str}", lambda found: names.get(found[1], "x"), path).encode()
        told = await raw(api.origin, b"GET %s HTTP/1.0\r\n%s\r\n" % (asked_for, CLOSE))
        assert told[9:10] in (b"2", b"3", b"4"), (path, told)
    assert not [key for key in counters.counts if key[0] == "requests" and not "200" <= key[3] < "500"]
