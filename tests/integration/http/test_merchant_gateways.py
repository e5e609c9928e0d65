"""A business's own checkout settings over HTTP: answers, and refusals in their order of precedence."""

from collections.abc import AsyncIterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.support.gateway_api import GatewayApi, a_gateway_api
from tests.support.http_world import refusal

pytestmark = pytest.mark.anyio


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    async with a_gateway_api(store) as api:
        yield api


@pytest.mark.rule(
    "GET /merchant/businesses/{businessId}/gateways", "PATCH /merchant/businesses/{businessId}/gateways/{gatewayId}"
)
async def test_a_business_lists_active_gateways_and_changes_how_it_sees_one(api: GatewayApi) -> None:
    acme = await api.an_active(displayOrder=0)
    listed = (await api.merchant("GET")).json()["data"]
    assert [(gateway["slug"], gateway["isEnabled"]) for gateway in listed] == [("builtin", True), ("acme", True)]
    body = {"isEnabled": True, "displayOrder": 2**31 - 1, "displayName": "d" * 50, "isDefault": True}
    changed = await api.merchant("PATCH", f"/{acme}", json=body)
    assert changed.status_code == 200
    gateway = changed.json()["data"]
    assert (gateway["businessDisplayOrder"], gateway["displayName"]) == (2**31 - 1, "d" * 50)
    assert gateway["isDefault"] is True
    assert (await api.merchant("GET")).json()["data"][1] == gateway
    off = (await api.merchant("PATCH", f"/{acme}", json={"isEnabled": False, "displayName": None})).json()["data"]
    assert (off["isEnabled"], off["isDefault"], off["displayName"]) == (False, False, None)
    answer = await api.merchant("PATCH", f"/{acme}", json={"isDefault": True})
    assert refusal(answer) == (400, "VALIDATION_ERROR", "isDefault")
    (override,) = (await api.admin("GET", f"/{acme}")).json()["data"]["overrides"]
    assert override == {"businessId": "biz_1", "businessName": "Ada's Shop", "updatedAt": "2025-01-31T12:00:00Z"}
    await api.admin("POST", f"/{acme}/disable")
    assert [gateway["slug"] for gateway in (await api.merchant("GET")).json()["data"]] == ["builtin"]


@pytest.mark.rule("options.5", "POST /merchant/businesses/{businessId}/gateways/reorder")
async def test_a_reorder_is_refused_on_order_or_done_whole(api: GatewayApi) -> None:
    first, second = await api.an_active("first"), await api.an_active("second")

    def order(*ids: str) -> dict[str, object]:
        return {"order": [{"gatewayId": id, "displayOrder": place} for place, id in enumerate(ids)]}

    for body, field in (
        ({}, "order"),
        ({"order": []}, "order"),
        (order(*[first] * 101), "order"),
        ({"order": [{"gatewayId": first}]}, "order[0].displayOrder"),
        ({"order": [{"gatewayId": first, "displayOrder": 0}, {"displayOrder": 1}]}, "order[1].gatewayId"),
        (order(first, first), "order"),
        (order(first, "gw_unknown"), "order"),
        (order(first, "gw_provider_a"), "order"),
    ):
        assert refusal(await api.merchant("POST", "/reorder", json=body)) == (400, "VALIDATION_ERROR", field)
    assert [g["businessDisplayOrder"] for g in (await api.merchant("GET")).json()["data"]] == [None, None, None]
    moved = await api.merchant("POST", "/reorder", json=order(second, "gw_builtin", first))
    assert moved.status_code == 200
    assert [g["slug"] for g in moved.json()["data"]] == ["builtin", "second", "first"]
    assert [g["businessDisplayOrder"] for g in moved.json()["data"]] == [None, 0, 2]
    assert (await api.merchant("GET")).json() == moved.json()
