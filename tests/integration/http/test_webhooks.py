"""Webhook endpoints over HTTP: every rule of the interface and of the decisions beside it."""

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from payagg.application.webhooks import endpoints as webhooks
from payagg.domain.webhook import STORED_ENDPOINTS_MAX, TESTS_AT_ONCE
from tests.support.http_world import Api, Shop, assert_refused
from tests.support.receivers import a_receiver, until

URL = "https://shop.example/hooks"
FIELDS = {
    "id", "url", "description", "environment", "secretLast4", "isActive", "events", "createdAt", "deliverySummary",
}  # fmt: skip


async def change(api: Api, shop: Shop, endpoint_id: str, **body: Any) -> httpx.Response:
    return await api.client.patch(f"{shop.path}/webhooks/{endpoint_id}", headers=shop.as_owner, json=body)


async def tried(api: Api, shop: Shop, endpoint_id: str) -> httpx.Response:
    return await api.client.post(f"{shop.path}/webhooks/{endpoint_id}/test", headers=shop.as_owner)


@pytest.mark.rule("webhooks.3", "GET /merchant/businesses/{businessId}/webhooks")
@pytest.mark.rule("POST /merchant/businesses/{businessId}/webhooks")
@pytest.mark.rule("PATCH /merchant/businesses/{businessId}/webhooks/{endpointId}")
async def test_an_endpoint_is_made_shown_and_changed_and_its_secret_told_once(api: Api, shop: Shop) -> None:
    made = await api.add_endpoint(shop, description="Orders", events=["payment.success", "payment.success"])
    assert set(made) == FIELDS | {"signingSecret"}
    secret = made.pop("signingSecret")
    assert (secret[:6], len(base64.b64decode(secret[6:])), secret[-4:]) == ("whsec_", 32, made["secretLast4"])
    assert (made["events"], made["isActive"]) == (["payment.success"], True)
    assert made["deliverySummary"] == {"successful": 0, "failed": 0}
    assert await api.get(f"{shop.path}/webhooks", shop.as_owner) == [made]

    assert (await change(api, shop, made["id"], url=None, events=None, isActive=None, unknown=1)).json()["data"] == made
    assert (await change(api, shop, made["id"], description=None)).json()["data"]["description"] is None
    other = {"url": "https://new.example/h", "events": [], "isActive": False}
    assert (await change(api, shop, made["id"], **other)).json()["data"].items() >= other.items()
    assert_refused(await change(api, shop, made["id"], events=["nope"]), 400, "VALIDATION_ERROR", "events")
    live = await api.add_endpoint(shop, environment="LIVE")
    refused = await change(api, shop, live["id"], url="http://new.example/")
    assert_refused(refused, 400, "VALIDATION_ERROR", "url")
    bad: list[tuple[dict[str, Any], str]] = [
        ({"url": "http://shop.example/hooks"}, "url"),
        ({"url": "https://ada:pw@shop.example/", "environment": "SANDBOX"}, "url"),
        ({"events": ["webhook.test"]}, "events"),
        ({"events": [1]}, "events[0]"),
    ]
    for body, field in bad:
        whole = {"url": URL, "environment": "LIVE", **body}
        refused = await api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=whole)
        assert_refused(refused, 400, "VALIDATION_ERROR", field)
    for _ in range(2):  # the same one twice, and a SANDBOX one in plain HTTP
        await api.add_endpoint(shop, "http://shop.example/hooks", events=[])


@pytest.mark.rule("limits.8", "WEBHOOK_LIMIT_REACHED", "DELETE /merchant/businesses/{businessId}/webhooks/{endpointId}")
async def test_five_endpoints_can_be_active_whatever_the_race(api: Api, shop: Shop) -> None:
    body = {"url": URL, "environment": "LIVE"}
    answers = await asyncio.gather(
        *(api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [409] * 15
    assert_refused(next(a for a in answers if a.status_code == 409), 409, "WEBHOOK_LIMIT_REACHED")

    [first, *_] = await api.get(f"{shop.path}/webhooks", shop.as_owner)
    gone = await api.client.delete(f"{shop.path}/webhooks/{first['id']}", headers=shop.as_owner)
    assert (gone.status_code, gone.json()["data"]) == (200, {**first, "isActive": False})
    await api.add_endpoint(shop, environment="SANDBOX")
    assert_refused(await change(api, shop, first["id"], isActive=True), 409, "WEBHOOK_LIMIT_REACHED")


async def store(api: Api, shop: Shop, endpoint_id: str, **fields: Any) -> None:
    """The endpoint as it is stored, but for these of its fields."""
    async with api.services.store.begin() as tx:
        endpoint = await tx.endpoints.lock(shop.business.id, endpoint_id)
        assert endpoint is not None
        await tx.endpoints.save(replace(endpoint, **fields))


@pytest.mark.rule("limits.34", "POST /merchant/businesses/{businessId}/webhooks/{endpointId}/test")
async def test_a_test_delivery_is_signed_answered_and_not_counted(api: Api, shop: Shop) -> None:
    async def told(endpoint: dict[str, Any]) -> tuple[bool, int | None, str | None]:
        result = (await tried(api, shop, endpoint["id"])).json()["data"]
        assert set(result) == {"delivered", "statusCode", "durationMs", "error"}
        return result["delivered"], result["statusCode"], result["error"]

    async with a_receiver() as receiver:
        made = await api.add_endpoint(shop, receiver.origin + "/hooks")
        assert await told(made) == (True, 200, None)
        [received] = receiver.received
        body = Webhook(made["signingSecret"]).verify(received.body, received.headers)
        own = ("webhook.test", "SANDBOX", received.headers["webhook-id"])
        assert (body["type"], body["environment"], body["id"]) == own

        again = await tried(api, shop, made["id"])
        assert_refused(again, 429, "RATE_LIMITED")
        assert 1 <= int(again.headers["retry-after"]) <= 5
        assert len(receiver.received) == 1
    [shown] = await api.get(f"{shop.path}/webhooks", shop.as_owner)
    assert shown["deliverySummary"] == {"successful": 0, "failed": 0}
    page = (await api.client.get(f"{shop.path}/webhooks/{made['id']}/deliveries", headers=shop.as_owner)).json()
    assert page["meta"]["total"] == 0

    dead, sealed, ahead = [await api.add_endpoint(shop, "http://127.0.0.1:1/hooks") for _ in range(3)]
    assert await told(dead) == (False, None, "the connection was refused")
    await store(api, shop, sealed["id"], secret=b"gone")
    assert await told(sealed) == (False, None, "the signing secret cannot be opened")
    # One that is dated ahead, by a clock that was set back, holds up no other.
    await store(api, shop, ahead["id"], last_test_at=api.services.clock.now() + timedelta(days=3))
    assert (await tried(api, shop, ahead["id"])).status_code == 200


@pytest.mark.rule("webhooks.7", "POST /merchant/businesses/{businessId}/webhooks/{endpointId}/rotate-secret")
@pytest.mark.rule("webhooks.1", "GET /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries")
@pytest.mark.rule("POST /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries/{deliveryId}/redeliver")
async def test_events_reach_the_endpoints_of_their_environment_that_asked_for_them(
    api: Api, shop: Shop, other: Shop
) -> None:
    async with a_receiver() as receiver:
        every = await api.add_endpoint(shop, receiver.origin + "/every")
        await api.add_endpoint(shop, receiver.origin + "/failed", events=["payment.failed"])
        await api.add_endpoint(shop, "https://shop.example/live", environment="LIVE")
        reference = await api.paid(shop)
        assert await api.services.dispatcher.run_once() == 1
    [received] = receiver.received
    assert received.path == "/every"
    assert received.headers["x-service-signature"] == received.headers["webhook-signature"]
    body = Webhook(every["signingSecret"]).verify(received.body, received.headers)
    assert set(body) == {"id", "type", "createdAt", "environment", "sequence", "data"}
    assert (body["type"], body["sequence"], body["environment"]) == ("payment.success", 1, "SANDBOX")
    assert (body["data"]["reference"], body["data"]["status"]) == (reference, "SUCCESS")
    assert not {"businessId", "webhookUrl", "processorReference", "processorResponse"} & set(body["data"])

    path = f"{shop.path}/webhooks/{every['id']}/deliveries"
    page = (await api.client.get(path, headers=shop.as_owner)).json()
    assert page["meta"] == {"page": 1, "perPage": 20, "total": 1}
    [row] = page["data"]
    assert set(row) == {
        "id", "eventId", "eventType", "reference", "status", "attempts", "lastStatusCode", "lastError", "durationMs",
        "createdAt", "lastAttemptAt", "nextAttemptAt",
    }  # fmt: skip
    assert (row["eventId"], row["reference"], row["status"]) == (body["id"], reference, "DELIVERED")
    [shown] = [one for one in await api.get(f"{shop.path}/webhooks", shop.as_owner) if one["id"] == every["id"]]
    assert shown["deliverySummary"] == {"successful": 1, "failed": 0}

    assert (await api.send("POST", f"{path}/{row['id']}/redeliver", shop.as_owner))["status"] == "PENDING"
    rotated = await api.send("POST", f"{shop.path}/webhooks/{every['id']}/rotate-secret", shop.as_owner)
    assert set(rotated) == FIELDS | {"signingSecret"}
    assert every["signingSecret"] != rotated["signingSecret"]
    assert rotated["secretLast4"] == rotated["signingSecret"][-4:]
    async with a_receiver() as second:
        await change(api, shop, every["id"], url=second.origin + "/moved")
        assert await api.services.dispatcher.run_once() == 1
    [again] = second.received
    assert (again.body, again.headers["webhook-id"]) == (received.body, received.headers["webhook-id"])
    for secret in (every["signingSecret"], rotated["signingSecret"]):  # the old one for a day
        Webhook(secret).verify(again.body, again.headers)
    await change(api, shop, every["id"], isActive=False)
    answer = await api.client.post(f"{path}/{row['id']}/redeliver", headers=shop.as_owner)
    assert_refused(answer, 400, "VALIDATION_ERROR", "endpointId")
    await change(api, shop, every["id"], isActive=True)
    assert_refused(await api.client.post(f"{path}/dlv_unknown/redeliver", headers=shop.as_owner), 404, "NOT_FOUND")
    theirs = f"{other.path}/webhooks/{every['id']}/deliveries/{row['id']}/redeliver"
    assert_refused(await api.client.post(theirs, headers=other.as_owner), 404, "NOT_FOUND")


@pytest.mark.rule("GET /events", "GET /merchant/businesses/{businessId}/events")
async def test_past_events_are_paged_by_cursor_exactly_as_sent(api: Api, shop: Shop, other: Shop) -> None:
    references = [await api.paid(shop) for _ in range(5)]
    await api.paid(other)
    whole = await api.events(shop, 5)
    assert [event["data"]["reference"] for event in whole] == references
    own = f"{shop.path}/events"
    assert await api.walked("/events", shop.as_sandbox, "events", limit=2) == whole
    assert await api.walked(own, shop.as_owner, "events", limit=2, environment="SANDBOX") == whole
    nothing: dict[str, Any] = {"events": [], "nextCursor": None, "hasMore": False}
    assert await api.get(own, shop.as_owner, environment="LIVE") == await api.get("/events", shop.as_live) == nothing
    theirs = (await api.get("/events", other.as_sandbox))["events"]
    assert not {*references} & {event["data"]["reference"] for event in theirs}
    async with api.services.store.begin() as tx:
        stored, _ = await tx.webhook_events.of_payment(references[0])
    answer = await api.client.get(f"{own}?environment=SANDBOX&limit=1", headers=shop.as_owner)
    assert stored[0].body in answer.content
    for name, value in (("after", "evt_1"), ("limit", "0")):
        answer = await api.client.get("/events", headers=shop.as_sandbox, params={name: value})
        assert_refused(answer, 400, "VALIDATION_ERROR", name)


@pytest.mark.rule("reports.16")
async def test_the_log_is_walked_by_cursor_as_by_number(api: Api, shop: Shop) -> None:
    made = await api.add_endpoint(shop)
    for _ in range(5):
        await api.paid(shop)
    path = f"{shop.path}/webhooks/{made['id']}/deliveries"

    async def page(**query: Any) -> Any:
        answer = await api.client.get(path, headers=shop.as_owner, params={"perPage": 2, **query})
        assert answer.status_code == 200, answer.text
        return answer.json()

    after: dict[str, str] = {}
    for number in (1, 2, 3):
        by_number, by_cursor = await page(page=number), await page(**after)
        assert by_cursor["data"] == by_number["data"]
        assert by_cursor["meta"]["total"] == by_number["meta"]["total"] == 5
        assert by_cursor["meta"].get("nextCursor") == (by_cursor["data"][-1]["id"] if after else None)
        after = {"after": by_cursor["data"][-1]["id"]}
    end = await page(**after)
    assert (end["data"], end["meta"]["nextCursor"]) == ([], after["after"])
    for query, field in (({"after": "dlv_1"}, "after"), ({"page": "2", **after}, "page")):
        assert_refused(await api.client.get(path, headers=shop.as_owner, params=query), 400, "VALIDATION_ERROR", field)


async def listed(api: Api, shop: Shop) -> list[str]:
    return [one["id"] for one in await api.get(f"{shop.path}/webhooks", shop.as_owner)]


async def deleted(api: Api, shop: Shop, endpoint_id: str, **query: str) -> httpx.Response:
    return await api.client.delete(f"{shop.path}/webhooks/{endpoint_id}", headers=shop.as_owner, params=query)


@pytest.mark.rule("limits.36")
async def test_deactivated_endpoints_never_stand_in_the_way_of_a_new_one(api: Api, shop: Shop, other: Shop) -> None:
    kept_on, theirs = await api.add_endpoint(shop), await api.add_endpoint(other)
    live = await api.add_endpoint(shop, environment="LIVE")
    await deleted(api, shop, live["id"])
    made = []
    for _ in range(STORED_ENDPOINTS_MAX + 5):
        made.append((await api.add_endpoint(shop))["id"])
        assert (await deleted(api, shop, made[-1])).status_code == 200

    # The list stays bounded: those that were switched off first are gone, and no one that is on, LIVE or another's.
    assert set(await listed(api, shop)) == {kept_on["id"], live["id"], *made[6:]}
    assert await listed(api, other) == [theirs["id"]]
    for answer in (await tried(api, shop, made[0]), await deleted(api, shop, made[0])):
        assert_refused(answer, 404, "NOT_FOUND")
    trail = await api.get(f"{shop.path}/audit", shop.as_owner, action="webhook.remove")
    assert [entry["objectId"] for entry in trail["entries"]] == made[5::-1]

    # One that is switched on again is none of those that go.
    await api.send("PATCH", f"{shop.path}/webhooks/{made[6]}", shop.as_owner, isActive=True)
    await api.add_endpoint(shop)
    assert {made[6], made[7]} & set(await listed(api, shop)) == {made[6]}

    # Switching off again removes nothing, however often; asked for, one is removed for good.
    last = made[-1]
    assert [(await deleted(api, shop, last)).status_code for _ in range(2)] == [200, 200]
    for odd in ("yes", ""):
        assert_refused(await deleted(api, shop, last, permanently=odd), 400, "VALIDATION_ERROR", "permanently")
    assert last in await listed(api, shop)
    gone = await deleted(api, shop, last, permanently="true")
    assert (gone.status_code, gone.json()["data"]["id"], gone.json()["data"]["isActive"]) == (200, last, False)
    assert last not in await listed(api, shop)
    for answer in (await deleted(api, shop, last, permanently="true"), await tried(api, shop, last)):
        assert_refused(answer, 404, "NOT_FOUND")


@pytest.mark.rule("limits.35")
async def test_a_business_may_run_so_many_tests_at_once(api: Api, shop: Shop, other: Shop) -> None:
    async with a_receiver() as receiver:
        receiver.holding = asyncio.Event()
        made = [await api.add_endpoint(shop, receiver.origin) for _ in range(TESTS_AT_ONCE + 1)]
        theirs = await api.add_endpoint(other, receiver.origin)
        *running, last = [asyncio.create_task(tried(api, shop, one["id"])) for one in made[:-1]]
        await until(lambda: len(receiver.received) == TESTS_AT_ONCE)
        refused = await tried(api, shop, made[-1]["id"])
        assert_refused(refused, 429, "RATE_LIMITED")
        assert int(refused.headers["retry-after"]) >= 1
        elsewhere = asyncio.create_task(tried(api, other, theirs["id"]))
        await until(lambda: len(receiver.received) == TESTS_AT_ONCE + 1)
        receiver.holding.set()
        for task in (*running, last, elsewhere):
            assert (await task).json()["data"]["delivered"]
        assert (await tried(api, shop, made[-1]["id"])).json()["data"]["delivered"]


@pytest.mark.rule("limits.35")
async def test_a_business_may_run_so_many_tests_a_minute(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TESTS_A_MINUTE", 2)
    shop, other = await api.open_shop(), await api.open_shop()
    made = [await api.add_endpoint(shop, "http://127.0.0.1:1/") for _ in range(3)]
    for one in made:
        await deleted(api, shop, one["id"])  # an endpoint that is off can be tested, too
    answers = [await tried(api, shop, one["id"]) for one in made]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert_refused(answers[2], 429, "RATE_LIMITED")
    assert 1 <= int(answers[2].headers["retry-after"]) <= 60
    assert (await tried(api, other, (await api.add_endpoint(other, "http://127.0.0.1:1/"))["id"])).status_code == 200
