"""A business's own checkout settings over HTTP: answers, and refusals in their order of precedence."""

from collections.abc import AsyncIterator

import pytest
from payagg_testing.builders import a_business

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.business import BusinessStatus
from payagg.domain.errors import Refusal
from payagg.domain.values import Environment
from tests.support.gateway_api import MERCHANT, GatewayApi, a_gateway_api
from tests.support.gateway_world import DRAIN
from tests.support.http_world import a_token, admin_token, merchant_token, refusal

pytestmark = pytest.mark.anyio

BUILT_IN = "/gw_builtin"
OPERATIONS = (("GET", ""), ("PATCH", BUILT_IN), ("POST", "/reorder"))


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    async with a_gateway_api(store) as api:
        yield api


@pytest.mark.rule("access.20")
async def test_only_a_verified_manager_of_the_business_comes_in(api: GatewayApi) -> None:
    for method, path in OPERATIONS:
        for credential in (None, "garbage", a_token("ada", type="merchant", emailVerified=True, ttl=-60)):
            answer = await api.call(method, MERCHANT + path, credential, content=b"{")
            assert refusal(answer) == (401, "UNAUTHORIZED", None)
        for credential in (admin_token(), merchant_token("mimi"), merchant_token("stranger")):
            answer = await api.call(method, MERCHANT + path, credential, content=b"{")
            assert refusal(answer) == (403, "FORBIDDEN", None)
        unverified = await api.call(method, MERCHANT + path, merchant_token("ada", verified=False), content=b"{")
        assert refusal(unverified) == (403, "EMAIL_NOT_VERIFIED", None)
        elsewhere = await api.call(method, MERCHANT.replace("biz_1", "biz_2") + path, merchant_token("ada"))
        assert refusal(elsewhere) == (403, "FORBIDDEN", None)


@pytest.mark.rule("options.7")
async def test_a_business_that_is_not_active_reads_and_changes_nothing(api: GatewayApi) -> None:
    for status in (BusinessStatus.RESTRICTED, BusinessStatus.SUSPENDED):
        await api.set_status(status)
        assert (await api.merchant("GET")).status_code == 200
        for method, path in OPERATIONS[1:]:
            answer = await api.merchant(method, path, content=b"{")
            assert refusal(answer) == (403, "BUSINESS_RESTRICTED", None)


@pytest.mark.rule("GET /merchant/businesses/{businessId}/gateways")
async def test_the_list_holds_active_gateways_with_the_built_in_first(api: GatewayApi) -> None:
    acme = await api.an_active(displayOrder=0)
    listed = (await api.merchant("GET")).json()
    assert set(listed) == {"success", "data"}
    assert [gateway["slug"] for gateway in listed["data"]] == ["builtin", "acme"]
    assert [gateway["isEnabled"] for gateway in listed["data"]] == [True, True]
    await api.admin("POST", f"/{acme}/disable")
    assert [gateway["slug"] for gateway in (await api.merchant("GET")).json()["data"]] == ["builtin"]
    api.clock.move(DRAIN)
    assert len((await api.merchant("GET")).json()["data"]) == 1


@pytest.mark.rule("PATCH /merchant/businesses/{businessId}/gateways/{gatewayId}")
async def test_a_change_answers_with_the_gateway_as_the_business_now_sees_it(api: GatewayApi) -> None:
    acme = await api.an_active()
    body = {"isEnabled": True, "displayOrder": 2**31 - 1, "displayName": "d" * 50, "isDefault": True}
    changed = await api.merchant("PATCH", f"/{acme}", json=body)
    assert changed.status_code == 200
    gateway = changed.json()["data"]
    assert (gateway["businessDisplayOrder"], gateway["displayName"], gateway["isDefault"]) == (
        2**31 - 1,
        "d" * 50,
        True,
    )
    assert (await api.merchant("GET")).json()["data"][1] == gateway
    off = (await api.merchant("PATCH", f"/{acme}", json={"isEnabled": False, "displayName": None})).json()["data"]
    assert (off["isEnabled"], off["isDefault"], off["displayName"]) == (False, False, None)
    answer = await api.merchant("PATCH", f"/{acme}", json={"isDefault": True})
    assert refusal(answer) == (400, "VALIDATION_ERROR", "isDefault")
    (override,) = (await api.admin("GET", f"/{acme}")).json()["data"]["overrides"]
    assert override == {"businessId": "biz_1", "businessName": "Ada's Shop", "updatedAt": "2025-01-31T12:00:00Z"}


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


@pytest.mark.rule("gateways.7")
async def test_routing_follows_every_switch_at_once(api: GatewayApi) -> None:
    acme = await api.an_active()

    async def preferring_acme() -> str:
        command = InitiatePayment(amount=150_000, gateway="acme")
        try:
            await api.services.payments.initiate(command, a_business(), Environment.SANDBOX)
        except Refusal as refused:
            return refused.code.name
        return "INITIATED"

    assert await preferring_acme() == "INITIATED"
    await api.merchant("PATCH", f"/{acme}", json={"isEnabled": False})
    assert await preferring_acme() == "GATEWAY_DISABLED"
    await api.admin("POST", f"/{acme}/disable")
    assert await preferring_acme() == "GATEWAY_NOT_FOUND"
    await api.admin("POST", f"/{acme}/enable")
    assert await preferring_acme() == "GATEWAY_DISABLED"
    await api.merchant("PATCH", f"/{acme}", json={"isEnabled": True})
    assert await preferring_acme() == "INITIATED"
    await api.admin("POST", f"/{acme}/disable")
    api.clock.move(DRAIN)
    assert await preferring_acme() == "GATEWAY_NOT_FOUND"
