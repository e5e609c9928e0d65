"""What a connection, a request's head and the way its body comes may be: beneath the routes."""

import asyncio
import json
import re
import socket
from ipaddress import ip_network
from typing import Any

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.application import telemetry
from payagg.entrypoints.extensions import NAMES
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.http.server.connections import OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import COOKIE_MAX, FIELDS_MAX, HEAD_MAX, ServerProtocol
from payagg.entrypoints.process import server
from payagg.entrypoints.process.http_server import listen
from tests.support.assembly import services_over
from tests.support.http_world import Api, Shop, an_api, raw, served

LINE = b"GET /healthz HTTP/1.1\r\n"
HOST, CLOSE = b"Host: shop.example\r\n", b"Connection: close\r\n"
PATIENCE = 30.0  # seconds; a bound for a slow machine, never an expectation
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def asked(api: Api, *fields: bytes, line: bytes = LINE) -> tuple[int, dict[str, Any]]:
    """Status of the answer, and its error."""
    head, _, body = (await raw(api.origin, b"".join((line, *fields, CLOSE, b"\r\n")))).partition(b"\r\n\r\n")
    return int(head[9:12]), json.loads(body).get("error", {})


async def told_at_once(api: Api, sent: bytes) -> tuple[int, str, str]:
    """Status, code and message of what is answered to a request that does not end: nobody waits for its rest."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.origin.rpartition(":")[2]))
    writer.write(sent)
    told = await asyncio.wait_for(reader.read(), 10)  # well before the deadline of a slow head
    writer.close()
    error = json.loads(told.partition(b"\r\n\r\n")[2])["error"]
    return int(told[9:12]), error["code"], error["message"]


def posted(shop: Shop, rest: bytes) -> bytes:
    """An initiation in JSON with a key, from the last fields of its head on."""
    return (
        b"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + shop.sandbox.encode() + b"\r\n" + rest
    )


async def test_a_head_has_so_many_fields_and_bytes_and_no_more(api: Api) -> None:
    few = b"a:\r\n" * (FIELDS_MAX - 2)
    assert (await asked(api, HOST, few))[0] == 200
    for fields in (few + b"a:\r\n", b"a:\r\n" * 20_000):
        status, error = await asked(api, HOST, fields)
        assert (status, error["code"], str(FIELDS_MAX) in error["message"]) == (431, "VALIDATION_ERROR", True)
    assert (await asked(api, HOST, b"X-Note: " + b"y" * (HEAD_MAX - 2_000) + b"\r\n"))[0] == 200
    # What stands between the parts of a head counts: names and values alone, with the path, would fit.
    value = b"y" * (HEAD_MAX // (FIELDS_MAX - 2) - 5)
    status, error = await asked(api, HOST, b"".join(b"X-%02d: %s\r\n" % (n, value) for n in range(FIELDS_MAX - 2)))
    assert (status, str(HEAD_MAX) in error["message"]) == (431, True)
    long_fields = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 999) for n in range(70))
    for endless in (b"GET /" + b"x" * HEAD_MAX, LINE + HOST + long_fields):
        status, code, message = await told_at_once(api, endless)
        assert (status, code, str(HEAD_MAX) in message) == (431, "VALIDATION_ERROR", True)


async def test_a_client_that_left_before_its_connection_was_taken_costs_nothing(api: Api, shop: Shop) -> None:
    """A server that had more to do than it could finds thousands of these, and who still waits is behind them."""
    line, key = b"GET /api/v1/payments/context HTTP/1.1\r\n", b"Authorization: Bearer %s\r\n" % shop.sandbox.encode()
    telemetry.counts.clear()
    with socket.create_connection(("127.0.0.1", int(api.origin.rpartition(":")[2]))) as client:
        client.sendall(line + HOST + key + b"\r\n")  # the server has no turn before the connection is closed
    for _ in range(3):
        assert (await asked(api, HOST, key, line=line))[0] == 200
    assert sum(number for key, number in telemetry.counts.items() if key[0] == "requests") == 3


async def test_cookies_fit_eight_kilobytes_on_every_path(api: Api) -> None:
    over = (b"Cookie: a=" + b"x" * (COOKIE_MAX - 1) + b"\r\n", b"Cookie: a=%s\r\n" % (b"x" * (COOKIE_MAX // 2)) * 2)
    of_extensions = (b"/console", b"/console/sign-in") if "console" in NAMES else ()
    for path in (*of_extensions, b"/healthz", b"/api/v1/payments/context"):
        line = b"GET " + path + b" HTTP/1.1\r\n"
        told = await raw(api.origin, line + HOST + CLOSE + b"Cookie: a=" + b"x" * (COOKIE_MAX - 2) + b"\r\n\r\n")
        assert told[9:12] in (b"200", b"302", b"303", b"401")
        for fields in over:
            status, error = await asked(api, HOST, fields, line=line)
            assert (status, error["code"], error["field"]) == (431, "VALIDATION_ERROR", "Cookie")


async def test_one_host_is_asked_for_and_without_one_no_route_fails(api: Api, shop: Shop) -> None:
    for fields in ((HOST, HOST), (HOST, b"host: other.example\r\n"), (), (b"Host: a/b\r\n",), (b"Host: a b\r\n",)):
        status, error = await asked(api, *fields)
        assert (status, error["code"], error["field"]) == (400, "VALIDATION_ERROR", "Host")
    assert (await asked(api, b"Host:\r\n"))[0] == 200
    names = {"reference": (await api.initiate(shop))["reference"], "business_id": shop.business.id}
    telemetry.counts.clear()
    paths = {route.path for route in create_app(api.services).routes}
    assert len(paths) > 50
    for path in paths:
        asked_for = re.sub(r"{([a-z_]+):str}", lambda found: names.get(found[1], "x"), path).encode()
        told = await raw(api.origin, b"GET %s HTTP/1.0\r\n%s\r\n" % (asked_for, CLOSE))
        assert told[9:10] in (b"2", b"3", b"4"), (path, told)
    assert not [key for key in telemetry.counts if key[0] == "requests" and not "200" <= key[3] < "500"]


async def test_a_body_that_is_endless_cut_short_or_followed_by_fields_makes_nothing(api: Api, shop: Shop) -> None:
    # One chunk past the cap and no end: a server that waited for the rest would never answer.
    chunks = (b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 5
    status, code, _ = await told_at_once(api, posted(shop, b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
    assert (status, code) == (413, "PAYLOAD_TOO_LARGE")
    await raw(api.origin, posted(shop, b"Content-Length: 100\r\n\r\n{"), half_open=True)
    body = b'Transfer-Encoding: chunked\r\n\r\ne\r\n{"amount":500}\r\n0\r\n'
    other = await api.open_shop()
    for field in (b"Authorization: Bearer x", b"X-Forwarded-For: 203.0.113.1", b"a:"):
        told = await raw(api.origin, posted(other, body + b"\r\n".join([field] * 100) + b"\r\n\r\n"))
        assert told.startswith(b"HTTP/1.1 400")
        assert b"behind a body" in told
    assert (await api.get("/payments", other.as_sandbox))["payments"] == []


@pytest.mark.parametrize("parted", [False, True])
async def test_who_asks_for_another_protocol_too_is_answered_in_this(api: Api, shop: Shop, parted: bool) -> None:
    """As Java's own client asks with every request over plain HTTP. The parser ends a message with such a head, and
    its body was the next request."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    body, inner = b'{"amount": 1000}', LINE + HOST + b"\r\n"
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    for framing, sent, statuses in (
        (b"Content-Length: %d" % len(body), body, [201]),
        (b"Content-Length: %d" % len(body), body + inner, [201]),
        (b"Transfer-Encoding: chunked", chunked, [201]),
        (b"Transfer-Encoding: chunked", b"x" + inner, [400]),
        (b"Content-Length: %d" % len(inner), inner, [400]),
        (b"X-None: 1", LINE + HOST + CLOSE + b"\r\n", [400, 200]),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(api.origin.rpartition(":")[2]))
        writer.write(posted(shop, upgrade + framing + b"\r\n\r\n"))
        if parted:
            await asyncio.sleep(0.05)
        writer.write(sent)
        told = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        assert [int(line) for line in re.findall(rb"HTTP/1.1 (\d+)", told)] == statuses, (framing, sent, told)


async def test_a_body_that_drips_is_given_up(shared_store: PostgresStore) -> None:
    async with an_api(services_over(shared_store), body_seconds=0.2) as api:
        told = await raw(api.origin, posted(await api.open_shop(), b"Content-Length: 100\r\n\r\n{"))
    assert told.startswith(b"HTTP/1.1 400")
    assert [words in told.lower() for words in (b"did not arrive in time", b"connection: close")] == [True, True]


async def idle(origin: str, source: str = "127.0.0.1") -> Connection:
    """A connection that says nothing; its end is seen at once when it was not admitted."""
    return await asyncio.open_connection("127.0.0.1", int(origin.rpartition(":")[2]), local_addr=(source, 0))


async def is_open(connection: Connection, seconds: float = 0.3) -> bool:
    """Whether it is for so long."""
    try:
        async with asyncio.timeout(seconds):
            return await connection[0].read(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


async def test_a_head_that_drips_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerProtocol, "header_seconds", 0.3)
    connection = await idle(api.origin)
    connection[1].write(LINE)
    async with asyncio.timeout(PATIENCE):
        while await is_open(connection, 0.05):
            connection[1].write(b"X-A: b\r\n")
    connection[1].close()


async def admitted(origin: str) -> Connection:
    """A connection of 127.0.0.1 as soon as there is room for it."""
    async with asyncio.timeout(PATIENCE):
        while not await is_open(one := await idle(origin)):
            one[1].close()
    return one


async def test_connections_are_capped_in_all_and_for_each_address(
    shared_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenConnections, "most", 4)
    monkeypatch.setattr(OpenConnections, "per_address", 2)
    telemetry.counts.clear()
    async with served(services_over(shared_store)) as origin:
        first, second, third = [await idle(origin) for _ in range(3)]
        assert [await is_open(one) for one in (first, second)] == [True, True]
        assert not await is_open(third, PATIENCE)
        others = [await idle(origin, "127.0.0.2"), await idle(origin, "127.0.0.3"), await idle(origin, "127.0.0.4")]
        assert [await is_open(one) for one in others[:2]] == [True, True]
        assert not await is_open(others[2], PATIENCE)
        assert telemetry.counts["connections_refused",] == 2
        second[1].close()
        again = await admitted(origin)
        monkeypatch.setattr(OpenConnections, "proxies", (ip_network("127.0.0.0/8"),))
        others[0][1].close()
        proxy = await admitted(origin)
        for _, writer in (first, third, again, proxy, *others):
            writer.close()


async def test_a_process_caps_its_connections_by_the_files_that_it_may_open(
    shared_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of them, and at least 100, are one address's."""
    monkeypatch.setattr(server, "connections_max", lambda: 101)
    telemetry.counts.clear()
    listener, stop = listen("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.create_task(server.serve_http(services_over(shared_store), listener, stop))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    connections = [await idle(origin) for _ in range(101)]
    assert not await is_open(connections[100], PATIENCE)
    connections += [await idle(origin, "127.0.0.2"), await idle(origin, "127.0.0.3")]
    assert not await is_open(connections[102], PATIENCE)
    assert telemetry.counts["connections_refused",] == 2
    for _, writer in connections:
        writer.close()
    stop.set()
    await serving
