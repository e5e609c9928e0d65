"""One payment's story and the deliveries to its own webhookUrl over HTTP: who sees what, and sends it again."""

from typing import Any

import pytest

from payagg.application.ports.webhooks import DeliveryAttemptResult, DeliveryResult
from payagg.application.reports.explain import timeline
from payagg.domain.audit import Action
from tests.support.audit_trail import entries
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer

SUPPORT = bearer(admin_token("SUPPORT"))
SANDBOX = {"environment": "SANDBOX"}
OWN = "https://own.shop.example/of-one-payment"


@pytest.mark.rule("GET /admin/payments/{reference}/story")
@pytest.mark.rule("GET /merchant/businesses/{businessId}/payments/{reference}/story")
async def test_the_story_of_a_payment_from_its_choice_to_its_delivery(api: Api, shop: Shop) -> None:
    hook = await api.add_endpoint(shop)
    reference = (await api.initiate(shop))["reference"]
    paid = {"gatewaySlug": "sandbox", "cardNumber": "4000000000000002"}
    await api.send("POST", f"/public/payments/{reference}/process", None, **paid)
    assert (await api.get(f"/public/payments/{reference}/verify"))["status"] == "FAILED"
    story = await api.get(f"{shop.path}/payments/{reference}/story", shop.as_owner, **SANDBOX)
    payment = await api.get(f"/payments/{reference}", shop.as_sandbox)
    assert story["payment"] == payment
    moves = [(one["sequence"], one["fromStatus"], one["toStatus"], one["actor"]) for one in story["transitions"]]
    assert moves == [(1, "INITIATED", "PENDING", "payer"), (2, "PENDING", "FAILED", "verify")]
    assert story["transitions"][1]["reason"] == payment["failureReason"]
    (attempt,) = story["attempts"]
    assert (attempt["number"], attempt["gateway"], attempt["handoff"]) == (1, "sandbox", "SIMULATOR")
    assert [one["type"] for one in story["events"]] == ["payment.pending", "payment.failed"]
    assert [one["eventId"] for one in story["deliveries"]] == [one["id"] for one in story["events"]]
    assert {one["endpointId"] for one in story["deliveries"]} == {hook["id"]}
    of_operators = dict.fromkeys(("providerId", "channel", "fee", "paidAt", "isOtherAccount"))
    whole = {**story, "attempts": [attempt | of_operators], "resolutions": [], "resolvable": False}
    assert await api.get(f"/admin/payments/{reference}/story", SUPPORT) == whole

    # It alone says which key made the payment.
    key = (await api.get(f"{shop.path}/api-keys", shop.as_owner))["sandbox"][0]["id"]
    assert story["apiKeyId"] == key
    test = await api.send("POST", f"{shop.path}/test-payment", shop.as_owner, amount=5000)
    by_hand = f"{shop.path}/payments/{test['reference']}/story"
    assert (await api.get(by_hand, shop.as_owner, **SANDBOX))["apiKeyId"] is None
    for path in (f"/payments/{reference}", "/payments", "/events", f"/public/payments/{reference}"):
        shown = str(await api.get(path, shop.as_sandbox))
        assert (key in shown, "apiKey" in shown) == (False, False)
    assert f"initiated   NGN 1,500.00 SANDBOX with {key}" in (await timeline(api.services.store, reference))[1]


@pytest.mark.rule("GET /merchant/businesses/{businessId}/payments/{reference}/story")
async def test_a_story_is_its_business_and_environment_s_alone(api: Api, shop: Shop, other: Shop) -> None:
    theirs = (await api.initiate(other))["reference"]
    live = (await api.initiate(shop, shop.as_live))["reference"]
    for reference in (theirs, live, live[:-6] + "ZZZZZZ"):
        path = f"{shop.path}/payments/{reference}/story"
        assert_refused(await api.client.get(path, params=SANDBOX, headers=shop.as_owner), 404, "PAYMENT_NOT_FOUND")
    path = f"{shop.path}/payments/{live}/story"
    assert (await api.get(path, shop.as_owner, environment="LIVE"))["payment"]["reference"] == live
    for query in ({}, {"environment": "live"}):
        refused = await api.client.get(path, params=query, headers=shop.as_owner)
        assert_refused(refused, 400, "VALIDATION_ERROR", "environment")
    unknown = f"/admin/payments/{live[:-6]}ZZZZZZ/story"
    assert_refused(await api.client.get(unknown, headers=SUPPORT), 404, "PAYMENT_NOT_FOUND")


async def send(api: Api) -> list[tuple[str, bytes]]:
    """What went where, all of it answered with 200."""
    now, queue = api.services.clock.now(), api.services.store.queue
    claimed = await queue.claim(now, 10, 5, api.services.dispatcher.lease)
    await queue.finish([DeliveryResult(one, DeliveryAttemptResult(200, None, 12), now, None) for one in claimed])
    return [(one.url, one.body) for one in claimed]


async def read(api: Api, shop: Shop, path: str, **query: Any) -> Any:
    answer = await api.client.get(path, headers=shop.as_owner, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.rule("reports.17", "GET /merchant/businesses/{businessId}/payments/{reference}/deliveries")
@pytest.mark.rule("POST /merchant/businesses/{businessId}/payments/{reference}/deliveries/{deliveryId}/redeliver")
async def test_what_went_to_a_payment_s_own_address_is_logged_and_sent_again(api: Api, shop: Shop, other: Shop) -> None:
    endpoint = (await api.add_endpoint(shop))["id"]
    path = f"{shop.path}/payments/{await api.paid(shop, webhookUrl=OWN)}/deliveries"
    await send(api)  # beside that to the endpoint
    page = await read(api, shop, path)
    assert page["meta"] == {"page": 1, "perPage": 20, "total": 1}
    [row] = page["data"]
    [like] = (await read(api, shop, f"{shop.path}/webhooks/{endpoint}/deliveries"))["data"]
    assert (set(row), row["id"] == like["id"], "own.shop" in str(page)) == (set(like), False, False)
    assert (row["eventId"], row["status"], row["attempts"]) == (like["eventId"], "DELIVERED", 1)
    beyond = await read(api, shop, path, page=2, perPage=1)
    assert (beyond["data"], beyond["meta"]) == ([], {"page": 2, "perPage": 1, "total": 1})

    again = await api.send("POST", f"{path}/{row['id']}/redeliver", shop.as_owner)
    assert (again["id"], again["status"]) == (row["id"], "PENDING")
    [(url, body)] = await send(api)
    assert (url, row["eventId"].encode() in body) == (OWN, True)
    assert (await read(api, shop, path))["data"][0]["attempts"] == 2
    own = {"action": Action.DELIVERY_REDELIVER.value, "business_id": shop.business.id}
    assert [entry.object_id for entry in await entries(api.services.store, **own)] == [row["id"]]

    foreign = path.replace(shop.business.id, other.business.id)
    assert_refused(await api.client.get(foreign, headers=other.as_owner), 404, "PAYMENT_NOT_FOUND")
    refused = await api.client.post(f"{foreign}/{row['id']}/redeliver", headers=other.as_owner)
    assert_refused(refused, 404, "PAYMENT_NOT_FOUND")
    assert_refused(await api.client.post(f"{path}/dlv_unknown/redeliver", headers=shop.as_owner), 404, "NOT_FOUND")
    # Without a signing endpoint of its environment nothing is sent again.
    await api.client.delete(f"{shop.path}/webhooks/{endpoint}", headers=shop.as_owner)
    await api.add_endpoint(shop, environment="LIVE")
    refused = await api.client.post(f"{path}/{row['id']}/redeliver", headers=shop.as_owner)
    assert_refused(refused, 400, "VALIDATION_ERROR", "reference")
