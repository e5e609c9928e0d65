"""What holds for every route: envelopes for every refusal, body limits, headers, odd paths, limits, downtime."""

import asyncio
import json
from dataclasses import replace
from ipaddress import ip_network

import httpx
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.application import counters
from payagg.entrypoints.http import app
from payagg.entrypoints.http.connections import OpenConnections
from payagg.entrypoints.http.uvicorn_protocol import HEAD_MAX
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, Shop, admin_token, an_api, assert_refused, bearer, raw, served
from tests.support.ports import free_port

pytestmark = pytest.mark.anyio


@pytest.mark.rule("access.1", "NOT_FOUND", "METHOD_NOT_ALLOWED")
async def test_unknown_paths_and_wrong_methods_answer_in_the_envelope(api: Api) -> None:
    for path in ("/nothing", "/payment", "/payments/", "/payments/initiate/", "//payments/context", "/payments//x"):
        assert_refused(await api.client.get(path), 404, "NOT_FOUND")
    for path in ("/api", "/api/v1", "/api/v2/payments/context", "/favicon.ico", "/schema", "/healthz/"):
        assert_refused(await api.client.get(api.origin + path), 404, "NOT_FOUND")
    wrong = await api.client.put("/payments/initiate", json={})
    assert_refused(wrong, 405, "METHOD_NOT_ALLOWED")
    assert wrong.headers["allow"] == "OPTIONS, POST"
    assert (await api.client.put("/payments/context")).headers["allow"] == "GET, HEAD, OPTIONS"
    assert_refused(await api.client.request("TRACE", "/payments/context"), 405, "METHOD_NOT_ALLOWED")
    assert_refused(await api.client.request("PROPFIND", "/payments/initiate"), 405, "METHOD_NOT_ALLOWED")


async def test_head_is_get_without_a_body_and_options_tells_the_methods(api: Api) -> None:
    shop = await api.open_shop()
    got = await api.client.get("/payments/context", headers=shop.as_sandbox)
    head = await api.client.head("/payments/context", headers=shop.as_sandbox)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert (await api.client.head("/payments/context")).status_code == 401
    options = await api.client.options("/payments/context", headers={"Origin": "https://evil.example"})
    assert options.status_code == 204
    assert options.headers["allow"] == "GET, HEAD, OPTIONS"
    both = await api.client.options(f"{shop.path}/api-keys")
    assert both.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert_refused(await api.client.options("/nothing"), 404, "NOT_FOUND")
    told = {name: value for name, value in options.headers.items() if name.startswith("access-control")}
    assert told == {"access-control-allow-origin": "http://127.0.0.1:8000"}


@pytest.mark.rule("access.31")
async def test_no_origin_is_reflected_and_no_host_is_believed(api: Api) -> None:
    shop = await api.open_shop()
    hostile = {"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example", "Host": "evil.example"}
    answer = await api.client.post("/payments/initiate", json={"amount": 100}, headers=shop.as_sandbox | hostile)
    assert answer.status_code == 201
    assert "evil" not in answer.text + str(answer.headers)


@pytest.mark.rule("access.17")
async def test_named_origins_alone_may_read_answers(store: PostgresStore) -> None:
    named = ("https://shop.example", "http://localhost:3000")
    async with an_api(services_over(store, replace(SETTINGS, cors_origins=named))) as api:
        path, own = "/payments/context", SETTINGS.base_url

        async def seen(method: str, origin: str | None, **headers: str) -> httpx.Response:
            told = headers | ({"Origin": origin} if origin is not None else {})
            answer = await api.client.request(method, path, headers=told)
            assert "access-control-allow-credentials" not in answer.headers
            assert answer.headers["vary"] == "Origin"
            return answer

        for origin in named:
            answer = await seen("GET", origin)
            assert_refused(answer, 401, "UNAUTHORIZED")
            assert answer.headers["access-control-allow-origin"] == origin
            assert "retry-after" in answer.headers["access-control-expose-headers"]
            asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
            preflight = await seen("OPTIONS", origin, **asks)
            assert (preflight.status_code, preflight.text) == (204, "")
            assert preflight.headers["access-control-allow-origin"] == origin
            assert "authorization" in preflight.headers["access-control-allow-headers"]
            assert preflight.headers["x-content-type-options"] == "nosniff"
        strange: tuple[str | None, ...] = (
            None,
            "",
            "null",
            "*",
            "https://SHOP.example",
            "https://shop.example.evil.example",
            "https://evil.example?https://shop.example",
            "http://shop.example",
            "https://shop.example:8443",
            "https://shop.example, https://evil.example",
        )
        for other in strange:
            for method in ("GET", "OPTIONS"):
                answer = await seen(method, other, **{"Access-Control-Request-Method": "POST"})
                assert answer.headers["access-control-allow-origin"] == own
                assert "access-control-allow-headers" not in answer.headers


async def test_security_headers_stand_on_every_answer(api: Api) -> None:
    for path in ("/payments/context", "/nothing", "/public/payments/PAY-20250131-AAAAAA"):
        answer = await api.client.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers


async def test_a_sane_request_id_is_taken_over_and_any_other_replaced(api: Api) -> None:
    kept = await api.client.get("/nothing", headers={"X-Request-Id": "abc-123_DEF.4"})
    assert kept.headers["x-request-id"] == "abc-123_DEF.4"
    seen = set()
    for odd in ("short", "x" * 65, "with space 1", "a;b=c\"'<>--"):
        answer = await api.client.get("/nothing", headers={"X-Request-Id": odd})
        assert answer.headers["x-request-id"] != odd
        seen.add(answer.headers["x-request-id"])
    assert len(seen) == 4


PATIENCE = 30.0  # seconds; a bound for a slow machine, never an expectation
ODD_SEGMENTS = [
    "PAY-20250131-AAAAA%00",
    "%ff%fe",
    "%ed%a0%80",
    "7" * 5000,
    "%D9%A2" * 2000,
    "PAY-20250131-AAAAAA%0a",
    "PAY%2F20250131%2fAAAAAA",
    "a%2f%2fb",
    "%3F",
    "PAY-20250131-aaaaaa",
    "PAY-20250131-AAAAA",
    "PAY-2025013-AAAAAAA",
    "PAY-٢٠٢٥٠١٣١-AAAAAA",
]


@pytest.mark.rule("payments.24", "INVALID_REFERENCE")
async def test_odd_path_parameters_are_refused_in_the_envelope(api: Api) -> None:
    shop = await api.open_shop()
    for segment in ODD_SEGMENTS:
        for path, headers, status, code in (
            (f"/payments/{segment}", shop.as_sandbox, 400, "INVALID_REFERENCE"),
            (f"/public/payments/{segment}", {}, 400, "INVALID_REFERENCE"),
            (f"/public/payments/{segment}/verify", {}, 400, "INVALID_REFERENCE"),
            (f"/merchant/businesses/{segment}/api-keys", shop.as_owner, 403, "FORBIDDEN"),
            (f"{shop.path}/test-payment/{segment}", shop.as_owner, 400, "INVALID_REFERENCE"),
        ):
            assert_refused(await api.client.get(path, headers=headers), status, code)


@pytest.mark.rule("payments.23")
async def test_a_reference_made_under_another_prefix_keeps_working(api: Api, store: PostgresStore) -> None:
    shop = await api.open_shop()
    path = f"{shop.path}/test-payment"
    payment = await api.client.post(path, json={"amount": 150_000}, headers=shop.as_owner)
    reference = payment.json()["data"]["reference"]
    renamed = replace(api.services.settings, reference_prefix="NEW")
    async with served(services_over(store, renamed)) as origin, httpx.AsyncClient(base_url=origin + "/api/v1") as later:
        for route, headers in (
            (f"/payments/{reference}", shop.as_sandbox),
            (f"/public/payments/{reference}", {}),
            (f"/public/payments/{reference}/gateways", {}),
            (f"/public/payments/{reference}/verify", {}),
            (f"{path}/{reference}", shop.as_owner),
        ):
            assert (await later.get(route, headers=headers)).status_code == 200, route
        fresh = await later.post(path, json={"amount": 150_000}, headers=shop.as_owner)
    assert (reference[:4], fresh.json()["data"]["reference"][:4]) == ("PAY-", "NEW-")
    assert_refused(await api.client.get("/public/payments/NEW-20250131-AAAAAA"), 404, "PAYMENT_NOT_FOUND")


async def test_overlong_paths_are_not_found(api: Api) -> None:
    for path in ("/" + "x" * 3000, "/nothing/" + "x" * 3000, "/payments/x" + "/x" * 3000):
        assert_refused(await api.client.get(path), 404, "NOT_FOUND")


ODD_CREDENTIALS = {
    "other scheme": [b"Basic abc"],
    "no credential": [b"Bearer"],
    "tab": [b"Bearer\tKEY"],
    "two headers": [b"Bearer KEY", b"Bearer KEY"],
    "empty": [b""],
}
ODD_KEYS = {
    "two spaces": b"Bearer  KEY",
    "overlong": b"Bearer " + b"a" * 60_000,
    "not ascii": b"Bearer \xc3\xa9\xff",
    "public key": b"Bearer spk_sand_" + b"0" * 32,
    "upper case": b"Bearer SSK_SAND_" + b"0" * 48,
    "a token": b"Bearer a.b.c",
}


@pytest.mark.rule("UNAUTHORIZED")
async def test_what_is_not_one_bearer_credential_is_unauthorized(api: Api) -> None:
    shop = await api.open_shop()
    for presented in ODD_CREDENTIALS.values():
        for path, key in (
            ("/payments/context", shop.sandbox),
            (f"{shop.path}/api-keys", shop.as_owner["Authorization"][7:]),
        ):
            headers = [(b"Authorization", value.replace(b"KEY", key.encode())) for value in presented]
            answer = await api.client.get(path, headers=headers)
            assert_refused(answer, 401, "UNAUTHORIZED")
            assert answer.content == (await api.client.get(path)).content


@pytest.mark.rule("access.22")
async def test_the_scheme_may_stand_in_any_letter_case(api: Api) -> None:
    shop = await api.open_shop()
    for scheme in ("bearer", "BEARER", "bEaReR"):
        for path, credential in (
            ("/payments/context", shop.as_sandbox),
            (f"{shop.path}/api-keys", shop.as_owner),
            ("/admin/gateways", bearer(admin_token())),
        ):
            headers = {"Authorization": credential["Authorization"].replace("Bearer", scheme)}
            assert (await api.client.get(path, headers=headers)).status_code == 200


@pytest.mark.rule("access.21")
async def test_an_odd_key_is_invalid_and_an_odd_token_unauthorized(api: Api) -> None:
    shop = await api.open_shop()
    for presented in ODD_KEYS.values():
        headers = {b"Authorization": presented.replace(b"KEY", shop.sandbox.encode())}
        answer = await api.client.get("/payments/context", headers=headers)
        assert_refused(answer, 401, "INVALID_API_KEY")
        assert answer.content == (await api.client.get("/payments/context", headers=bearer("x"))).content
        assert_refused(await api.client.get(f"{shop.path}/api-keys", headers=headers), 401, "UNAUTHORIZED")
        assert_refused(await api.client.get("/admin/gateways", headers=headers), 401, "UNAUTHORIZED")


@pytest.mark.rule("access.23")
async def test_a_credential_in_the_query_is_none(api: Api) -> None:
    shop = await api.open_shop()
    answer = await api.client.get("/payments/context", params={"access_token": shop.sandbox, "api_key": shop.sandbox})
    assert_refused(answer, 401, "UNAUTHORIZED")


OTHER_TYPES = [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"]


@pytest.mark.rule("access.29")
async def test_a_json_body_under_another_content_type_is_refused(api: Api) -> None:
    shop = await api.open_shop()
    for media_type in OTHER_TYPES:
        headers = shop.as_sandbox | ({"Content-Type": media_type} if media_type else {})
        answer = await api.client.post("/payments/initiate", content=b'{"amount":100}', headers=headers)
        assert_refused(answer, 400, "VALIDATION_ERROR")


ENCODINGS = ["gzip", "deflate", "br", "zstd", "x"]


async def test_a_compressed_body_is_refused_unread(api: Api) -> None:
    shop = await api.open_shop()
    for encoding in ENCODINGS:
        headers = shop.as_sandbox | {"Content-Encoding": encoding, "Content-Type": "application/json"}
        answer = await api.client.post("/payments/initiate", content=b'{"amount":100}', headers=headers)
        assert_refused(answer, 400, "VALIDATION_ERROR")


@pytest.mark.rule("limits.23", "PAYLOAD_TOO_LARGE")
async def test_a_body_at_the_cap_passes_and_one_past_it_does_not(api: Api) -> None:
    shop = await api.open_shop()
    headers = shop.as_sandbox | {"Content-Type": "application/json"}
    fits = b'{"amount":100}'.ljust(64 * 1024)
    assert (await api.client.post("/payments/initiate", content=fits, headers=headers)).status_code == 201
    over = await api.client.post("/payments/initiate", content=fits + b" ", headers=headers)
    assert_refused(over, 413, "PAYLOAD_TOO_LARGE")
    nobody = await api.client.post("/payments/initiate", content=fits + b" ", headers={})
    assert_refused(nobody, 401, "UNAUTHORIZED")


async def test_an_endless_chunked_body_is_cut_at_the_cap(api: Api) -> None:
    shop = await api.open_shop()
    host, _, port = api.origin.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(posted(shop, b"Transfer-Encoding: chunked\r\n\r\n"))
    # One chunk past the cap and no end: a server that waited for the rest would never answer.
    writer.write((b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 5)
    told = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert told.startswith(b"HTTP/1.1 413")
    assert b"PAYLOAD_TOO_LARGE" in told


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * HEAD_MAX,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 999) for n in range(70)),
    ],
    ids=["line", "headers"],
)
async def test_a_head_without_end_is_cut_at_the_cap(api: Api, head: bytes) -> None:
    host, _, port = api.origin.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head)
    told = await asyncio.wait_for(reader.read(), 5)  # well before the deadline of a slow head
    writer.close()
    assert told.startswith(b"HTTP/1.1 400")
    error = json.loads(told.partition(b"\r\n\r\n")[2])["error"]
    assert (error["code"], str(HEAD_MAX) in error["message"]) == ("VALIDATION_ERROR", True)


async def test_a_head_within_the_cap_passes(api: Api) -> None:
    shop = await api.open_shop()
    answer = await api.client.get("/payments/context", headers=shop.as_sandbox | {"X-Note": "y" * (HEAD_MAX - 2_000)})
    assert answer.status_code == 200


def posted(shop: Shop, rest: bytes) -> bytes:
    """An initiation in JSON with a key, from the last fields of its head on."""
    return (
        b"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + shop.sandbox.encode() + b"\r\n" + rest
    )


async def test_fields_behind_a_chunked_body_are_refused(api: Api) -> None:
    shop = await api.open_shop()
    body = b'Transfer-Encoding: chunked\r\n\r\ne\r\n{"amount":500}\r\n0\r\n'
    for field in (b"Authorization: Bearer x", b"X-Forwarded-For: 203.0.113.1", b"a:"):
        told = await raw(api.origin, posted(shop, body + b"\r\n".join([field] * 100) + b"\r\n\r\n"))
        assert told.startswith(b"HTTP/1.1 400")
        assert b"behind a body" in told
    assert (await api.client.get("/payments", headers=shop.as_sandbox)).json()["data"]["payments"] == []


async def idle(origin: str, source: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that says nothing; its end is seen at once when it was not admitted."""
    port = int(origin.rpartition(":")[2])
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))


async def is_open(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], seconds: float = 0.3) -> bool:
    """Whether it is for so long."""
    try:
        async with asyncio.timeout(seconds):
            return await connection[0].read(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


async def admitted(origin: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of 127.0.0.1 as soon as there is room for it."""
    async with asyncio.timeout(PATIENCE):
        while not await is_open(one := await idle(origin)):
            one[1].close()
    return one


async def test_connections_are_capped_in_all_and_for_each_address(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenConnections, "most", 4)
    monkeypatch.setattr(OpenConnections, "per_address", 2)
    counters.counts.clear()
    async with served(services_over(store)) as origin:
        first, second, third = [await idle(origin) for _ in range(3)]
        assert [await is_open(one) for one in (first, second)] == [True, True]
        assert not await is_open(third, PATIENCE)
        others = [await idle(origin, "127.0.0.2"), await idle(origin, "127.0.0.3"), await idle(origin, "127.0.0.4")]
        assert [await is_open(one) for one in others[:2]] == [True, True]
        assert not await is_open(others[2], PATIENCE)
        assert counters.counts["connections_refused",] == 2
        second[1].close()
        again = await admitted(origin)
        monkeypatch.setattr(OpenConnections, "proxies", (ip_network("127.0.0.0/8"),))
        others[0][1].close()
        proxy = await admitted(origin)
        for _, writer in (first, third, again, proxy, *others):
            writer.close()


async def test_a_body_that_drips_is_given_up(store: PostgresStore) -> None:
    async with an_api(services_over(store), body_seconds=0.2) as api:
        shop = await api.open_shop()
        told = await raw(api.origin, posted(shop, b"Content-Length: 100\r\n\r\n{"))
    assert told.startswith(b"HTTP/1.1 400")
    assert b"did not arrive in time" in told
    assert b"connection: close" in told.lower()


async def test_a_body_cut_short_is_no_fault_of_ours(api: Api) -> None:
    shop = await api.open_shop()
    await raw(api.origin, posted(shop, b"Content-Length: 100\r\n\r\n{"), half_open=True)
    assert (await api.client.get("/payments/context", headers=shop.as_sandbox)).status_code == 200


@pytest.mark.rule("limits.26", "limits.27")
async def test_unknown_references_are_limited_per_address(store: PostgresStore) -> None:
    async with an_api(services_over(store, replace(SETTINGS, unknown_reference_limit=5))) as api:
        shop = await api.open_shop()
        reference = (await api.initiate(shop))["reference"]
        answers = [await api.client.get(f"/public/payments/PAY-20250131-AAAAA{n}") for n in range(7)]
        assert [answer.status_code for answer in answers] == [404] * 5 + [429] * 2
        guess = await api.client.get(
            "/public/payments/PAY-20250131-BBBBBB/verify", headers={"X-Forwarded-For": "203.0.113.9"}
        )
        assert_refused(guess, 429, "RATE_LIMITED")
        assert 1 <= int(guess.headers["retry-after"]) <= 60
        assert guess.headers["ratelimit"] == f'"minute";r=0;t={guess.headers["retry-after"]}'
        # Payers behind the same address go on.
        for path in ("", "/gateways", "/verify"):
            assert (await api.client.get(f"/public/payments/{reference}{path}")).status_code == 200
        card = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
        assert (await api.client.post(f"/public/payments/{reference}/process", json=card)).status_code == 200
        assert (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).status_code == 200


@pytest.mark.rule("access.30")
async def test_behind_a_trusted_proxy_the_rightmost_untrusted_address_counts(store: PostgresStore) -> None:
    proxies = (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8"))
    settings = replace(SETTINGS, unknown_reference_limit=1, trusted_proxies=proxies)
    async with an_api(services_over(store, settings)) as api:

        async def guess(forwarded: str) -> int:
            path = "/public/payments/PAY-20250131-AAAAAA"
            return (await api.client.get(path, headers={"X-Forwarded-For": forwarded})).status_code

        while await guess("203.0.113.1") != 429:
            pass
        assert await guess("198.51.100.7, 203.0.113.1, 10.1.1.1") == 429
        assert await guess("203.0.113.1, 198.51.100.7") == 404
        while await guess("2001:db8:1:2::1") != 429:
            pass
        assert await guess("2001:db8:1:2:ffff::9") == 429
        assert await guess("2001:db8:1:3::1") == 404


async def test_health_and_readiness(api: Api) -> None:
    assert (await api.client.get(api.origin + "/healthz")).json()["data"] == {"status": "ok"}
    assert (await api.client.get(api.origin + "/readyz")).json()["data"] == {"status": "ready"}


async def test_a_server_whose_database_says_nothing_is_not_ready_at_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent() -> bool:
        await asyncio.sleep(60)
        return True

    monkeypatch.setattr(api.services.store, "is_current", silent)
    monkeypatch.setattr(app, "READY_SECONDS", 0.05)
    assert_refused(await api.client.get(api.origin + "/readyz"), 503, "SERVICE_UNAVAILABLE")


@pytest.mark.rule("access.36", "SERVICE_UNAVAILABLE")
async def test_with_the_database_down_every_answer_is_503_with_retry_after() -> None:
    store = PostgresStore(f"postgresql://nobody:x@127.0.0.1:{free_port()}/none", pool_size=2, pgbouncer=False)
    async with an_api(services_over(store)) as api:
        key = bearer("ssk_sand_" + "0" * 48)
        for path, headers in (
            ("/payments/context", key),
            ("/payments/PAY-20250131-AAAAAA", key),
            ("/public/payments/PAY-20250131-AAAAAA", {}),
            (api.origin + "/readyz", {}),
        ):
            answer = await api.client.get(path, headers=headers)
            assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
            assert int(answer.headers["retry-after"]) >= 1
        # Those who were turned away at one moment do not come back at one moment.
        asked = [await api.client.get("/payments/context", headers=key) for _ in range(40)]
        seconds = {int(answer.headers["retry-after"]) for answer in asked}
        assert len(seconds) > 1
        assert seconds <= {1, 2, 3, 4}
        page = await api.client.get(api.origin + "/checkout/PAY-20250131-AAAAAA")
        assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert "Nothing has been charged" in page.text
        assert int(page.headers["retry-after"]) >= 1
        assert (await api.client.get(api.origin + "/healthz")).status_code == 200
        assert_refused(await api.client.get("/payments/context"), 401, "UNAUTHORIZED")
    await store.close()
