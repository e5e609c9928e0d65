"""What is written of a request without secrets or personal data (F9): its line in the access log, and its spans."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from payagg_testing.conformance.inbox import Inbox
from payagg_testing.memory import MemoryStore

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.http.server.connections import OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import HEAD_MAX
from payagg.entrypoints.process.tracing import tracing
from tests.support.assembly import SETTINGS, services_over, with_parts
from tests.support.http_world import Api, Shop, admin_token, an_api, assert_refused, bearer, raw, working
from tests.support.processes import serving
from tests.support.provider_world import world_on

Lines = list[structlog.typing.EventDict]


@pytest.fixture
def api(own_api: Api) -> Api:
    """Another test's line may come after its answer."""
    return own_api


@pytest.fixture
def lines() -> Iterator[Lines]:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        yield lines


async def test_a_request_is_one_line_without_what_its_caller_sends_but_the_reference(lines: Lines, api: Api) -> None:
    shop = await api.open_shop()
    lines.clear()
    canary = "canary-7f3a"
    own = shop.as_sandbox | {"X-Request-Id": "req-12345678", "User-Agent": canary, "Idempotency-Key": canary}
    body = {"amount": 100, "customerEmail": f"{canary}@example.com", "metadata": {"a": canary}}
    answer = await api.client.post(f"/payments/initiate?q={canary}", json=body, headers=own)
    assert answer.status_code == 400  # for its query alone
    reference = (await api.initiate(shop, customerName=canary, idempotencyKey=canary))["reference"]
    await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)
    await api.client.post("/payments/initiate", content=canary.encode(), headers=shop.as_sandbox)
    await api.client.get(f"/payments/{canary}", headers=bearer(f"{canary}.{canary}.{canary}"))
    await api.client.get(f"/{canary}")
    await api.client.get("/payments/x%0d%0aX-Forged:%201", headers=shop.as_sandbox)
    requests = [line for line in lines if line["event"] == "request"]
    assert len(requests) == 7
    refused, first, second, *_ = requests
    assert refused["request_id"] == "req-12345678"
    assert (first["method"], first["route"], first["status"]) == ("POST", "/api/v1/payments/initiate", 201)
    assert first["reference"] == second["reference"] == reference
    assert second["route"].startswith("/api/v1/payments/{reference")
    assert second["request_id"] != first["request_id"]
    for secret in (canary, shop.sandbox, "Forged"):
        assert secret not in repr(lines)


@pytest.mark.rule("audit.6")
async def test_the_log_line_names_who_called_and_which_object(lines: Lines, api: Api, shop: Shop) -> None:
    keys, gateways = f"{shop.path}/api-keys", f"{shop.path}/gateways"
    key = (await api.send("POST", keys, shop.as_owner, environment="SANDBOX", name="Till"))["id"]
    await api.send("DELETE", f"{keys}/{key}", shop.as_owner)
    await api.get(gateways, shop.as_owner)
    await api.get("/admin/gateways", bearer(admin_token()))
    await api.get("/payments/context", shop.as_sandbox)
    await api.client.get(f"{shop.path}/webhooks/canary", headers=shop.as_owner)
    await api.client.get(gateways)
    requests = [line for line in lines if line["event"] == "request"]
    told = [(line.get("realm"), line.get("subject"), line.get("object")) for line in requests]
    (holder,) = {subject for realm, subject, _ in told if realm == "key"}
    assert str(holder).startswith("key_")
    assert told == [
        ("merchant", shop.owner, key),
        ("merchant", shop.owner, key),
        ("merchant", shop.owner, shop.business.id),
        ("admin", "admin-1", None),
        ("key", holder, None),
        (None, None, None),
        (None, None, shop.business.id),
    ]


@pytest.mark.rule("INTERNAL_ERROR")
@pytest.mark.error_lines("request failed")
@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [(RuntimeError, 500, "INTERNAL_ERROR"), (MemoryError, 503, "SERVICE_UNAVAILABLE")],
)
async def test_a_fault_of_ours_is_answered_without_details_and_logged_with_a_trace_without_values(
    lines: Lines, store: PostgresStore, fault: type[Exception], status: int, code: str
) -> None:
    class Faulting:
        def __getattr__(self, name: str) -> object:
            raise fault("canary-secret")

    async with an_api(with_parts(services_over(store), checkout=Faulting())) as api:
        answer = await api.client.get("/public/payments/PAY-20250131-AAAAAA")
    assert_refused(answer, status, code)
    assert ("Retry-After" in answer.headers) is (status == 503)
    (failure,) = [line for line in lines if line["event"] == "request failed"]
    assert fault.__name__ in failure["trace"]
    assert failure["request_id"] == answer.headers["x-request-id"]
    assert "canary" not in answer.text + repr(lines)


PROXIES = (ip_network("127.0.0.0/8"),)
FORWARDED = {"X-Forwarded-For": "192.0.2.7, 203.0.113.9"}


@pytest.mark.rule("access.35")
@pytest.mark.parametrize(("proxies", "client"), [((), "127.0.0.1"), (PROXIES, "203.0.113.9")], ids=["direct", "proxy"])
async def test_a_refused_request_is_logged_with_its_clients_address_and_its_id(
    lines: Lines, store: PostgresStore, proxies: Any, client: str
) -> None:
    few: dict[str, Any] = {"refused_body_limit": 1, "key_rate_limit": 4, "unknown_reference_limit": 1}
    async with an_api(services_over(store, replace(SETTINGS, trusted_proxies=proxies, **few))) as api:
        shop = await api.open_shop()
        path = f"/public/payments/{(await api.initiate(shop))['reference']}"
        as_json = {"Content-Type": "application/json"}
        lines.clear()
        answers = [
            await api.client.request(method, where, headers=FORWARDED | headers, content=content)
            for method, where, headers, content in (
                ("GET", "/payments/context", {}, b""),
                ("GET", "/payments/context", bearer("ssk_sand_" + "0" * 48), b""),
                ("GET", "/admin/gateways", bearer("a.b.c"), b""),
                ("GET", "/admin/gateways", shop.as_owner, b""),
                ("GET", "/merchant/businesses/biz_unknown/api-keys", shop.as_owner, b""),
                *[("POST", f"{path}/process", as_json, b"{")] * 2,
                ("POST", "/payments/initiate", as_json | shop.as_sandbox, b" " * 70_000),
                *[("POST", "/payments/initiate", as_json | shop.as_sandbox, b"{}")] * 3,
                ("POST", "/webhooks/provider_b/live", {"Content-Encoding": "gzip"}, b"{}"),
                ("GET", "/public/payments/nonsense", {}, b""),
            )
        ]
        statuses = [answer.status_code for answer in answers]
        assert statuses == [401, 401, 401, 403, 403, 400, 429, 413, 400, 400, 429, 400, 400]
        logged = [line for line in lines if line["event"] == "request"]
        assert [line["status"] for line in logged] == statuses
        assert [line.get("client") for line in logged] == [client] * len(logged)
        assert [line["request_id"] for line in logged] == [answer.headers["x-request-id"] for answer in answers]
        assert shop.sandbox not in repr(lines)
        lines.clear()
        assert (await api.client.get(path, headers=FORWARDED)).status_code == 200
        assert [("client" in line) for line in lines] == [False]  # of who pays nothing is kept that nobody needs


HEAD = b"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\n"
SECRET = b"Authorization: Bearer ssk_sand_" + b"c" * 48
UNREADABLE = {
    "no HTTP": b"\x16\x03\x01 canary\r\n\r\n",
    "a bad field": HEAD + SECRET + b"\r\ncanary\r\n\r\n",
    "too long": HEAD + SECRET + b"\r\nX-Long: " + b"canary" * HEAD_MAX + b"\r\n\r\n",
    "trailers": HEAD + SECRET + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Canary: canary\r\n\r\n",
    "a bad chunk": HEAD + SECRET + b"\r\nTransfer-Encoding: chunked\r\n\r\ncanary\r\n",
    "two lengths": HEAD + SECRET + b"\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
}


@pytest.mark.rule("access.35")
async def test_what_never_became_a_request_is_logged(lines: Lines, monkeypatch: pytest.MonkeyPatch, api: Api) -> None:
    for name, sent in UNREADABLE.items():
        lines.clear()
        told = (await raw(api.origin, sent)).decode()
        assert told.startswith(("HTTP/1.1 400 ", "HTTP/1.1 431 ")), name
        (line,) = [line for line in lines if line["event"] == "request refused"]
        assert (line["client"], line["log_level"]) == ("127.0.0.1", "warning"), name
        assert f"X-Request-Id: {line['request_id']}\r\n" in told
        assert line["reason"] in json.loads(told.partition("\r\n\r\n")[2])["error"]["message"]
        assert "canary" not in repr(lines) + told
        assert SECRET.decode()[-48:] not in repr(lines) + told
    # What a proxy forwards is logged with the address that it names.
    lines.clear()
    monkeypatch.setattr(OpenConnections, "proxies", PROXIES)
    await raw(api.origin, UNREADABLE["trailers"])
    assert [line["client"] for line in lines if line["event"] == "request refused"] == ["203.0.113.9"]


async def test_connections_that_are_not_admitted_are_a_line_a_second_with_their_address(lines: Lines) -> None:
    connections = OpenConnections(lambda size: "0" * size)
    for now in (10.0, 10.1, 10.2, 11.5):
        connections.refuse("192.0.2.1", now)
    assert [(line["client"], line["refused"]) for line in lines] == [("192.0.2.1", 1), ("192.0.2.1", 3)]


@pytest.fixture(scope="module")
def provider() -> TracerProvider:
    """OpenTelemetry takes one provider for each process."""
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    return provider


@pytest.fixture
def exporter(provider: TracerProvider) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


async def test_a_request_is_one_span_that_names_the_route_and_no_secret(exporter: InMemorySpanExporter) -> None:
    async with an_api(services_over(MemoryStore(), replace(SETTINGS, otel=True))) as api:
        shop = await api.open_shop()
        await api.initiate(shop, customerEmail="ada@example.com")
    [span] = exporter.get_finished_spans()
    assert "/payments/initiate" in span.name
    written = span.to_json()
    assert shop.sandbox not in written
    assert "ada@example.com" not in written


async def test_providers_the_database_and_the_worker_have_spans_under_their_request(
    exporter: InMemorySpanExporter, database_url: str, tmp_path: Path
) -> None:
    with tracing(replace(SETTINGS, otel=True)):
        async with world_on(database_url, tmp_path) as world:
            await world.handed_over("provider_a")
            names: set[str] = set()
            async with working(world.services) as running:
                while (
                    not {"sweep expiry", "provider start_charge", "postgres statement", "postgres transaction"} <= names
                ):
                    names = {span.name for span in exporter.get_finished_spans()}
                    assert not running.done()
                    await asyncio.sleep(0)
    spans = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}
    under = {
        (spans[span.parent.span_id].name, span.name)
        for span in spans.values()
        if span.parent and span.parent.span_id in spans
    }
    assert ("postgres transaction", "postgres statement") in under
    told = "".join(span.to_json() for span in spans.values())
    assert "INSERT INTO" in told
    assert "ada@example.com" not in told
    assert "sk_test_" not in told


def test_a_process_sends_its_spans_with_the_extra_alone(database_url: str) -> None:
    with closing(Inbox.serve()) as collector:
        with serving(database_url, PAYAGG_OTEL="true", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as (_, origin):
            assert httpx.get(f"{origin}/readyz", trust_env=False).status_code == 200
        told = b"".join(one.body for one in collector.deliveries_at("/v1/traces"))
    for word in (b"payagg", b"GET /readyz", b"postgres statement", b"sweep expiry"):
        assert word in told
