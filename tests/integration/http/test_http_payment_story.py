"""One payment's story over HTTP: what a manager and an administrator see of it, and who sees nothing."""

import pytest

from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, assert_refused, bearer, merchant_token

pytestmark = pytest.mark.anyio
SUPPORT = bearer(admin_token("SUPPORT"))
HOOK = {"url": "http://127.0.0.1:9/hooks", "environment": "SANDBOX"}


async def test_the_story_of_a_payment_from_its_choice_to_its_delivery(api: Api) -> None:
    shop = await api.open_shop()
    hook = (await api.client.post(f"{shop.path}/webhooks", json=HOOK, headers=shop.as_owner)).json()["data"]
    reference = (await api.initiate(shop))["reference"]
    paid = {"gatewaySlug": "sandbox", "cardNumber": "4000000000000002"}
    assert (await api.client.post(f"/public/payments/{reference}/process", json=paid)).status_code == 200
    assert (await api.client.get(f"/public/payments/{reference}/verify")).json()["data"]["status"] == "FAILED"
    path = f"{shop.path}/payments/{reference}/story"
    answer = await api.client.get(path, params={"environment": "SANDBOX"}, headers=shop.as_owner)
    story = answer.json()["data"]
    payment = (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).json()["data"]
    assert story["payment"] == payment
    moves = [(one["sequence"], one["fromStatus"], one["toStatus"], one["actor"]) for one in story["transitions"]]
    assert moves == [(1, "INITIATED", "PENDING", "payer"), (2, "PENDING", "FAILED", "verify")]
    assert story["transitions"][1]["reason"] == payment["failureReason"]
    (attempt,) = story["attempts"]
    assert (attempt["number"], attempt["gateway"], attempt["handoff"]) == (1, "sandbox", "SIMULATOR")
    assert [one["type"] for one in story["events"]] == ["payment.pending", "payment.failed"]
    assert [one["eventId"] for one in story["deliveries"]] == [one["id"] for one in story["events"]]
    assert {one["endpointId"] for one in story["deliveries"]} == {hook["id"]}
    by_admin = await api.client.get(f"/admin/payments/{reference}/story", headers=SUPPORT)
    assert by_admin.json() == answer.json()


async def test_a_story_is_its_business_and_environment_s_alone(api: Api) -> None:
    await api.open_gateways()
    shop, other = await api.open_shop(), await api.open_shop()
    theirs = (await api.initiate(other))["reference"]
    live = (await api.initiate(shop, shop.as_live))["reference"]
    for reference in (theirs, live, live[:-6] + "ZZZZZZ"):
        path = f"{shop.path}/payments/{reference}/story"
        answer = await api.client.get(path, params={"environment": "SANDBOX"}, headers=shop.as_owner)
        assert_refused(answer, 404, "PAYMENT_NOT_FOUND")
    path = f"{shop.path}/payments/{live}/story"
    found = await api.client.get(path, params={"environment": Environment.LIVE.value}, headers=shop.as_owner)
    assert found.json()["data"]["payment"]["reference"] == live
    for query in ({}, {"environment": "live"}):
        refused = await api.client.get(path, params=query, headers=shop.as_owner)
        assert_refused(refused, 400, "VALIDATION_ERROR", "environment")
    stranger = bearer(merchant_token("stranger"))
    assert_refused(await api.client.get(path, params={"environment": "LIVE"}, headers=stranger), 403, "FORBIDDEN")
    unknown = f"/admin/payments/{live[:-6]}ZZZZZZ/story"
    assert_refused(await api.client.get(unknown, headers=SUPPORT), 404, "PAYMENT_NOT_FOUND")
