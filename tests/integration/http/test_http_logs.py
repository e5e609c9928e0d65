"""The access log: request id, route and reference on one line each, and no secret or personal data (F9)."""

from collections.abc import Iterator

import pytest
import structlog

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.http.errors import trace_of
from tests.support.assembly import services_over
from tests.support.http_world import Api, an_api, assert_refused, bearer

pytestmark = pytest.mark.anyio


@pytest.fixture
def lines() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        yield lines


async def test_a_request_is_one_line_with_its_id_route_and_reference(
    lines: list[structlog.typing.EventDict], api: Api
) -> None:
    shop = await api.open_shop()
    lines.clear()
    answer = await api.client.post(
        "/payments/initiate", json={"amount": 100}, headers=shop.as_sandbox | {"X-Request-Id": "req-12345678"}
    )
    reference = answer.json()["data"]["reference"]
    await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)
    first, second = [line for line in lines if line["event"] == "request"]
    assert first["request_id"] == "req-12345678"
    assert (first["method"], first["route"], first["status"]) == ("POST", "/api/v1/payments/initiate", 201)
    assert first["reference"] == second["reference"] == reference
    assert second["route"].startswith("/api/v1/payments/{reference")
    assert second["request_id"] != first["request_id"]


async def test_nothing_a_caller_sends_is_logged_but_a_reference(
    lines: list[structlog.typing.EventDict], api: Api
) -> None:
    shop = await api.open_shop()
    canary = "canary-7f3a"
    await api.client.post(
        f"/payments/initiate?q={canary}",
        json={
            "amount": 100,
            "customerEmail": f"{canary}@example.com",
            "customerName": canary,
            "metadata": {"a": canary},
        },
        headers=shop.as_sandbox | {"X-Canary": canary, "User-Agent": canary, "Idempotency-Key": canary},
    )
    await api.client.post("/payments/initiate", content=canary.encode(), headers=shop.as_sandbox)
    await api.client.get(f"/payments/{canary}", headers=bearer(f"{canary}.{canary}.{canary}"))
    await api.client.get(f"/{canary}")
    await api.client.get("/payments/x%0d%0aX-Forged:%201", headers=shop.as_sandbox)
    assert len(lines) >= 5
    shown = repr(lines)
    for secret in (canary, shop.sandbox, "Forged"):
        assert secret not in shown


async def test_a_fault_of_ours_is_a_500_without_details_and_a_trace_without_values(
    lines: list[structlog.typing.EventDict], store: PostgresStore
) -> None:
    class Faulting:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("canary-secret")

    services = services_over(store)
    broken = services.__class__(**{**vars(services), "checkout": Faulting()})
    async with an_api(broken) as api:
        answer = await api.client.get("/public/payments/PAY-20250131-AAAAAA")
    assert_refused(answer, 500, "INTERNAL_ERROR")
    (failure,) = [line for line in lines if line["event"] == "request failed"]
    assert "RuntimeError" in failure["trace"]
    assert failure["request_id"] == answer.headers["x-request-id"]
    assert "canary" not in answer.text + repr(lines)


def test_a_trace_follows_causes_and_holds_no_message() -> None:
    try:
        try:
            raise ValueError("inner canary")
        except ValueError as inner:
            raise RuntimeError("outer canary") from inner
    except RuntimeError as error:
        trace = trace_of(error)
    assert [line for line in trace if not line.startswith(" ")] == ["RuntimeError", "ValueError"]
    assert "canary" not in "".join(trace)
