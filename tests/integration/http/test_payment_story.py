"""One payment's story over HTTP: what a manager and an administrator see of it, and who sees nothing."""

import pytest

from payagg.application.explain import timeline
from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, assert_refused, bearer, merchant_token

pytestmark = pytest.mark.anyio
SUPPORT = bearer(admin_token("SUPPORT"))


@pytest.mark.rule(
    "GET /admin/payments/{reference}/story", "GET /merchant/businesses/{businessId}/payments/{reference}/story"
)
async def test_the_story_of_a_payment_from_its_choice_to_its_delivery(api: Api) -> None:
    shop = await api.open_shop()
    hook = await api.add_endpoint(shop)
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
    of_operators = {"providerId": None, "channel": None, "fee": None, "paidAt": None, "isOtherAccount": None}
    whole = {**story, "attempts": [{**attempt, **of_operators}], "resolutions": [], "resolvable": False}
    assert by_admin.json()["data"] == whole


async def test_a_story_says_which_key_made_the_payment_and_nothing_else_does(api: Api) -> None:
    shop = await api.open_shop()
    await api.add_endpoint(shop)
    keys = (await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]
    [key] = keys["sandbox"]
    by_key = (await api.initiate(shop))["reference"]
    test = await api.client.post(f"{shop.path}/test-payment", json={"amount": 5000}, headers=shop.as_owner)
    by_hand = test.json()["data"]["reference"]
    sandbox = {"environment": "SANDBOX"}
    for reference, made_by in ((by_key, key["id"]), (by_hand, None)):
        own = f"{shop.path}/payments/{reference}/story"
        story = (await api.client.get(own, params=sandbox, headers=shop.as_owner)).json()["data"]
        assert story["apiKeyId"] == made_by
        theirs = (await api.client.get(f"/admin/payments/{reference}/story", headers=SUPPORT)).json()["data"]
        assert theirs["apiKeyId"] == made_by
        simulate = f"{shop.path}/test-payment/{reference}/simulate"
        await api.client.post(simulate, json={"outcome": "SUCCESS"}, headers=shop.as_owner)
    for path, headers in (
        (f"/payments/{by_key}", shop.as_sandbox),
        ("/payments", shop.as_sandbox),
        ("/events", shop.as_sandbox),
        (f"/public/payments/{by_key}", {}),
    ):
        shown = await api.client.get(path, headers=headers)
        assert shown.status_code == 200
        assert key["id"] not in shown.text
        assert "apiKey" not in shown.text
    lines = await timeline(api.services.store, by_key)
    assert f"initiated   NGN 1,500.00 SANDBOX with {key['id']}" in lines[1]


@pytest.mark.rule("GET /merchant/businesses/{businessId}/payments/{reference}/story")
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
