"""What holds for every route: envelopes for every refusal, headers, odd paths, credentials, downtime."""

import asyncio
import time
from dataclasses import dataclass, replace

import httpx
import pytest
from payagg_testing.network_faults import Blackhole

from payagg.adapters.postgres.store import PostgresStore
from payagg.application import deadline
from payagg.application.ports.elsewhere import Elsewhere
from payagg.domain.errors import misdirected_refusal
from payagg.entrypoints.http import app
from tests.support.assembly import SETTINGS, services_over, with_parts
from tests.support.http_world import Api, Shop, admin_token, an_api, assert_refused, bearer
from tests.support.ports import free_port
from tests.support.postgres_world import by_proxy


@pytest.mark.rule("access.1", "NOT_FOUND", "METHOD_NOT_ALLOWED")
async def test_unknown_paths_and_wrong_methods_answer_in_the_envelope(api: Api) -> None:
    for path in ("/nothing", "/payment", "/payments/", "//payments/context", "/payments//x", "/payments" + "/x" * 3000):
        assert_refused(await api.client.get(path), 404, "NOT_FOUND")
    for path in ("/api", "/api/v1", "/api/v2/payments/context", "/favicon.ico", "/schema", "/healthz/"):
        assert_refused(await api.client.get(api.origin + path), 404, "NOT_FOUND")
    wrong = await api.client.put("/payments/initiate", json={})
    assert_refused(wrong, 405, "METHOD_NOT_ALLOWED")
    assert wrong.headers["link"] == '</docs/errors#method_not_allowed>; rel="help"'
    assert wrong.headers["allow"] == "OPTIONS, POST"
    assert (await api.client.put("/payments/context")).headers["allow"] == "GET, HEAD, OPTIONS"
    assert_refused(await api.client.request("TRACE", "/payments/context"), 405, "METHOD_NOT_ALLOWED")
    assert_refused(await api.client.request("PROPFIND", "/payments/initiate"), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.rule("access.31")
async def test_every_answer_has_its_headers_and_believes_neither_origin_nor_host(api: Api, shop: Shop) -> None:
    for path in ("/payments/context", "/nothing", "/public/payments/PAY-20250131-AAAAAA"):
        told = (await api.client.get(path, headers={"X-Request-Id": "abc-123_DEF.4"})).headers
        own = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store"}
        assert told.items() >= {**own, "x-request-id": "abc-123_DEF.4"}.items()
        assert "frame-ancestors 'none'" in told["content-security-policy"]
        assert "server" not in told
    odd = ("short", "x" * 65, "with space 1", "a;b=c\"'<>--")
    ids = [(await api.client.get("/nothing", headers={"X-Request-Id": one})).headers["x-request-id"] for one in odd]
    assert len({*ids, *odd}) == 8
    hostile = {"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example", "Host": "evil.example"}
    answer = await api.client.post("/payments/initiate", json={"amount": 100}, headers=shop.as_sandbox | hostile)
    assert answer.status_code == 201
    assert "evil" not in answer.text + str(answer.headers)


async def test_head_is_get_without_a_body_and_options_tells_the_methods(api: Api, shop: Shop) -> None:
    got = await api.client.get("/payments/context", headers=shop.as_sandbox)
    head = await api.client.head("/payments/context", headers=shop.as_sandbox)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(got.content)))
    assert (await api.client.head("/payments/context")).status_code == 401
    options = await api.client.options("/payments/context", headers={"Origin": "https://evil.example"})
    assert options.status_code == 204
    assert options.headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await api.client.options(f"{shop.path}/api-keys")).headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert_refused(await api.client.options("/nothing"), 404, "NOT_FOUND")
    told = {name: value for name, value in options.headers.items() if name.startswith("access-control")}
    assert told == {"access-control-allow-origin": "http://127.0.0.1:8000"}


@pytest.mark.rule("access.17")
async def test_named_origins_alone_may_read_answers(shared_store: PostgresStore) -> None:
    named = ("https://shop.example", "http://localhost:3000")
    async with an_api(services_over(shared_store, replace(SETTINGS, cors_origins=named))) as api:
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
            assert "retry-after" in answer.headers["access-control-expose-headers"]
            asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
            preflight = await seen("OPTIONS", origin, **asks)
            assert (preflight.status_code, preflight.text) == (204, "")
            assert "authorization" in preflight.headers["access-control-allow-headers"]
            assert preflight.headers["x-content-type-options"] == "nosniff"
            assert {one.headers["access-control-allow-origin"] for one in (answer, preflight)} == {origin}
        strange: tuple[str | None, ...] = (
            *(None, "", "null", "*", "https://SHOP.example", "http://shop.example", "https://shop.example:8443"),
            *("https://shop.example.evil.example", "https://evil.example?https://shop.example"),
            "https://shop.example, https://evil.example",
        )
        for other in strange:
            for method in ("GET", "OPTIONS"):
                answer = await seen(method, other, **{"Access-Control-Request-Method": "POST"})
                assert answer.headers["access-control-allow-origin"] == own
                assert "access-control-allow-headers" not in answer.headers


@pytest.mark.rule("payments.23")
async def test_a_reference_made_under_another_prefix_keeps_working(api: Api, shared_store: PostgresStore) -> None:
    shop = await api.open_shop()
    reference = (await api.initiate(shop))["reference"]
    renamed = replace(api.services.settings, reference_prefix="NEW")
    async with an_api(services_over(shared_store, renamed)) as later:
        fresh = (await later.initiate(shop))["reference"]
        await later.get(f"/payments/{reference}", shop.as_sandbox)
        await later.get(f"/public/payments/{reference}/verify")
    assert (reference[:4], fresh[:4]) == ("PAY-", "NEW-")


# What is presented for one bearer credential; KEY stands for one that is right.
NO_CREDENTIALS = ([b"Basic abc"], [b"Bearer"], [b"Bearer\tKEY"], [b"Bearer KEY", b"Bearer KEY"], [b""])
ODD_KEYS = (
    *(b"Bearer  KEY", b"Bearer " + b"a" * 60_000, b"Bearer \xc3\xa9\xff", b"Bearer a.b.c"),
    *(b"Bearer spk_sand_" + b"0" * 32, b"Bearer SSK_SAND_" + b"0" * 48),
)


@pytest.mark.rule("access.21", "access.22", "access.23", "UNAUTHORIZED")
async def test_one_bearer_credential_in_the_header_is_asked_for_and_no_other(api: Api, shop: Shop) -> None:
    rights = (("/payments/context", shop.as_sandbox), (f"{shop.path}/api-keys", shop.as_owner))
    for path, right in rights:
        nothing = await api.client.get(path)
        key = right["Authorization"][7:]
        for presented in NO_CREDENTIALS:
            several = [(b"Authorization", value.replace(b"KEY", key.encode())) for value in presented]
            answer = await api.client.get(path, headers=several)
            assert_refused(answer, 401, "UNAUTHORIZED")
            assert answer.content == nothing.content
        assert_refused(await api.client.get(path, params={"access_token": key, "api_key": key}), 401, "UNAUTHORIZED")
    for odd in ODD_KEYS:
        raw = {b"Authorization": odd.replace(b"KEY", shop.sandbox.encode())}
        answer = await api.client.get("/payments/context", headers=raw)
        assert_refused(answer, 401, "INVALID_API_KEY")
        assert answer.content == (await api.client.get("/payments/context", headers=bearer("x"))).content
        for path in (f"{shop.path}/api-keys", "/admin/gateways"):
            assert_refused(await api.client.get(path, headers=raw), 401, "UNAUTHORIZED")
    for scheme in ("bearer", "BEARER", "bEaReR"):
        for path, right in (*rights, ("/admin/gateways", bearer(admin_token()))):
            await api.get(path, {"Authorization": right["Authorization"].replace("Bearer", scheme)})


async def test_a_server_with_a_silent_database_is_not_ready_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await api.get(api.origin + "/healthz") == {"status": "ok"}
    assert await api.get(api.origin + "/readyz") == {"status": "ready"}

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
        assert 1 < len(seconds & {1, 2, 3, 4}) == len(seconds)
        page = await api.client.get(api.origin + "/checkout/PAY-20250131-AAAAAA")
        assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert ("Nothing has been charged" in page.text, int(page.headers["retry-after"]) >= 1) == (True, True)
        await api.get(api.origin + "/healthz")
        assert_refused(await api.client.get("/payments/context"), 401, "UNAUTHORIZED")
    await store.close()


@pytest.mark.rule("access.36", "SERVICE_UNAVAILABLE")
async def test_a_request_waits_once_for_a_database_that_falls_silent(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with by_proxy(database_url) as (proxy, url):
        store = PostgresStore(url, pool_size=10, pgbouncer=False)
        async with an_api(services_over(store)) as api:
            shop = await api.open_shop()
            reference = (await api.initiate(shop))["reference"]
            monkeypatch.setattr(deadline, "REQUEST_SECONDS", 0.5)
            proxy.impose(Blackhole())
            pages = (
                f"/payments/{reference}",
                f"{api.origin}/checkout/{reference}",
                f"/public/payments/{reference}/verify",
            )
            for method, path in (("POST", "/payments/initiate"), *(("GET", page) for page in pages)):
                body = {"amount": 150000} if method == "POST" else None
                since = time.monotonic()
                answer = await api.client.request(method, path, json=body, headers=shop.as_sandbox)
                assert answer.status_code == 503, (path, answer.text)
                assert 0.4 < time.monotonic() - since < 4, path
            proxy.heal()
        await store.close()


@dataclass(frozen=True)
class SetElsewhere(Elsewhere):
    def ensure_gateways_are_set_here(self) -> None:
        raise misdirected_refusal("PBX")


@pytest.mark.rule("MISDIRECTED_REQUEST")
async def test_a_refusal_names_the_installation_that_has_it(store: PostgresStore) -> None:
    as_admin, gateway = bearer(admin_token()), {"slug": "acme", "name": "Acme"}
    async with an_api(with_parts(services_over(store), elsewhere=SetElsewhere())) as api:
        refused = await api.client.post("/admin/gateways", json=gateway, headers=as_admin)
        assert_refused(refused, 421, "MISDIRECTED_REQUEST")
        assert refused.headers["x-payagg-cell"] == "PBX"
        assert (await api.client.get("/admin/gateways", headers=as_admin)).json()["data"] == []
