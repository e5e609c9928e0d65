"""F1, F2, F4 and F6 over every field of every operation, generated from the description the application serves.

Each request is valid but for one thing (`tests/integration/http/hostile_cells.py`): nothing else can be refused.
"""

from collections import Counter
from typing import Any

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.openapi.document import document
from payagg.entrypoints.http.openapi.operations import routes_of
from tests.integration.http.hostile_cells import HostileCell, HostileCells
from tests.integration.http.test_hostile import NO_LIMITS, credential, in_envelope, in_parallel
from tests.support.assembly import services_over
from tests.support.http_world import Api, Shop, an_api

pytestmark = pytest.mark.anyio
ROUTES = {route.id: route for route in routes_of(api_routes())}
# Anything that stands for a valid request's secrets, or for a hostile one's.
SECRET_WORDS = ("sk_live_...", "sk_test_...", "4242 4242")


async def places(api: Api, shop: Shop) -> dict[str, str]:
    """An id that exists for each path parameter but those that take a history."""
    return {
        "businessId": shop.business.id,
        "endpointId": (await api.add_endpoint(shop))["id"],
        "gatewayId": "gw_provider_b",
        "reference": (await api.initiate(shop))["reference"],
        "anomalyId": "anm_unknown",
        "reconciliationId": "rec_unknown",
        "keyId": "key_unknown",
        "deliveryId": "dlv_unknown",
    }


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
    named = error.get("field", "")
    if cell.must_name and not (
        named == cell.must_name or named.startswith((f"{cell.must_name}.", f"{cell.must_name}["))
    ):
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


@pytest.mark.long
@pytest.mark.rule("access.1", "VALIDATION_ERROR")
async def test_one_hostile_value_in_a_valid_call_is_named_or_taken_and_never_our_fault(store: PostgresStore) -> None:
    described = document(api_routes(), NO_LIMITS)
    cells = list(HostileCells(described))
    assert {cell.operation for cell in cells} == with_inputs(described)
    faults: list[str] = []
    answered: Counter[int] = Counter()
    async with an_api(services_over(store, NO_LIMITS)) as api:
        await api.open_gateways()
        shop = await api.open_shop()
        known = await places(api, shop)
        untouched = f"/payments/{(await api.initiate(shop, amount=777_000))['reference']}"
        before = (await api.client.get(untouched, headers=shop.as_sandbox)).json()

        async def send(cell: HostileCell) -> None:
            route = ROUTES[cell.operation]
            headers: dict[str, Any] = credential(route, shop)
            if cell.body is not None:
                headers["Content-Type"] = "application/json"
            path = cell.path.format_map(known) + (f"?{cell.query}" if cell.query else "")
            answer = await api.client.request(
                cell.method.upper(), path, content=cell.body, headers={**headers, **cell.headers}
            )
            answered[answer.status_code] += 1
            error = in_envelope(answer) if answer.status_code >= 400 else None
            wanted = broken_rule(cell, answer.status_code, error, route.operation.body_max)
            secrets = [word for word in (*SECRET_WORDS, shop.sandbox, shop.live) if word in answer.text]
            if wanted or (secrets and error is not None):
                faults.append(
                    f"{cell.operation}: {cell.says} must be {wanted or 'answered without secrets'}, "
                    f"and was {answer.status_code} {answer.text[:200]}"
                )

        await in_parallel(send, [(cell,) for cell in cells])
        assert (await api.client.get(untouched, headers=shop.as_sandbox)).json() == before
    assert faults == []
    print(f"{len(cells)} hostile requests: {dict(answered)}")
    # Most are refused; that some are taken shows that the rest of each request is valid.
    assert answered[400] > len(cells) / 2
    assert answered[200] + answered[201] > 100, answered
