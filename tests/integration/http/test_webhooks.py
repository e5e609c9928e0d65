"""Webhook endpoints over HTTP: every rule of the interface and of the decisions beside it."""

import asyncio
import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.business import BusinessStatus
from tests.support.http_world import Api, Shop, assert_refused, bearer, merchant_token
from tests.support.receivers import a_receiver

pytestmark = pytest.mark.anyio
URL = "https://shop.example/hooks"
FIELDS = {
    "id", "url", "description", "environment", "secretLast4", "isActive", "events", "createdAt", "deliverySummary",
}  # fmt: skip


async def listed(api: Api, shop: Shop) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = (await api.client.get(f"{shop.path}/webhooks", headers=shop.as_owner)).json()["data"]
    return data


async def change(api: Api, shop: Shop, endpoint_id: str, **body: Any) -> httpx.Response:
    return await api.client.patch(f"{shop.path}/webhooks/{endpoint_id}", headers=shop.as_owner, json=body)


@pytest.mark.rule("GET /merchant/businesses/{businessId}/webhooks", "POST /merchant/businesses/{businessId}/webhooks")
async def test_the_secret_is_shown_at_creation_and_never_again(api: Api) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop, description="Orders", events=["payment.success", "payment.success"])
    assert set(made) == FIELDS | {"signingSecret"}
    secret = made["signingSecret"]
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert made["secretLast4"] == secret[-4:]
    assert made["events"] == ["payment.success"]
    assert (made["isActive"], made["deliverySummary"]) == (True, {"successful": 0, "failed": 0})
    answer = await api.client.get(f"{shop.path}/webhooks", headers=shop.as_owner)
    assert secret not in answer.text
    [shown] = answer.json()["data"]
    assert set(shown) == FIELDS
    assert shown == {name: value for name, value in made.items() if name != "signingSecret"}


@pytest.mark.rule("webhooks.3")
async def test_a_bad_endpoint_is_refused_naming_the_field(api: Api) -> None:
    shop = await api.open_shop()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"url": "http://shop.example/hooks", "environment": "LIVE"}, "url"),
        ({"url": "ftp://shop.example/hooks", "environment": "SANDBOX"}, "url"),
        ({"url": "https://ada:pw@shop.example/", "environment": "SANDBOX"}, "url"),
        ({"url": "https://" + "a" * 2050, "environment": "SANDBOX"}, "url"),
        ({"url": URL, "environment": "LIVE", "description": "x" * 201}, "description"),
        ({"url": URL, "environment": "LIVE", "events": ["payment.lost"]}, "events"),
        ({"url": URL, "environment": "LIVE", "events": ["webhook.test"]}, "events"),
        ({"url": URL, "environment": "LIVE", "events": [1]}, "events[0]"),
    ]
    for body, field in cases:
        answer = await api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body)
        assert_refused(answer, 400, "VALIDATION_ERROR", field)
    for _ in range(2):  # the same one twice, and a SANDBOX one in plain HTTP
        await api.add_endpoint(shop, "http://shop.example/hooks", events=[])


@pytest.mark.rule("limits.8", "DELETE /merchant/businesses/{businessId}/webhooks/{endpointId}")
async def test_five_endpoints_can_be_active_whatever_the_race(api: Api) -> None:
    shop = await api.open_shop()
    body = {"url": URL, "environment": "LIVE"}
    answers = await asyncio.gather(
        *(api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [409] * 15
    assert_refused(next(a for a in answers if a.status_code == 409), 409, "WEBHOOK_LIMIT_REACHED")

    [first, *_] = await listed(api, shop)
    gone = await api.client.delete(f"{shop.path}/webhooks/{first['id']}", headers=shop.as_owner)
    assert (gone.status_code, gone.json()["data"]) == (200, {**first, "isActive": False})
    await api.add_endpoint(shop, environment="SANDBOX")
    assert_refused(await change(api, shop, first["id"], isActive=True), 409, "WEBHOOK_LIMIT_REACHED")


@pytest.mark.rule("PATCH /merchant/businesses/{businessId}/webhooks/{endpointId}")
async def test_a_change_touches_what_it_names(api: Api) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop, description="Orders", events=["payment.failed"])
    del made["signingSecret"]
    same = await change(api, shop, made["id"], url=None, events=None, isActive=None, unknown=1)
    assert same.json()["data"] == made
    assert (await change(api, shop, made["id"], description=None)).json()["data"]["description"] is None
    changed = (await change(api, shop, made["id"], url="https://new.example/h", events=[], isActive=False)).json()[
        "data"
    ]
    assert (changed["url"], changed["events"], changed["isActive"]) == ("https://new.example/h", [], False)
    assert_refused(await change(api, shop, made["id"], events=["nope"]), 400, "VALIDATION_ERROR", "events")
    live = await api.add_endpoint(shop, environment="LIVE")
    assert_refused(await change(api, shop, live["id"], url="http://new.example/"), 400, "VALIDATION_ERROR", "url")


@pytest.mark.rule("webhooks.8")
async def test_a_business_that_is_not_active_reads_and_changes_nothing(api: Api) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop)
    one = f"{shop.path}/webhooks/{made['id']}"
    for status in (BusinessStatus.RESTRICTED, BusinessStatus.SUSPENDED):
        await api.change(shop, status=status)
        for path in (f"{shop.path}/webhooks", f"{one}/deliveries", f"{shop.path}/events?environment=SANDBOX"):
            assert (await api.client.get(path, headers=shop.as_owner)).status_code == 200
        for method, path in (
            ("POST", f"{shop.path}/webhooks"),
            ("PATCH", one),
            ("DELETE", one),
            ("POST", f"{one}/test"),
            ("POST", f"{one}/rotate-secret"),
            ("POST", f"{one}/deliveries/dlv_1/redeliver"),
        ):
            answer = await api.client.request(method, path, headers=shop.as_owner)
            assert_refused(answer, 403, "BUSINESS_RESTRICTED")


async def test_another_business_and_a_plain_member_reach_nothing(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    made = await api.add_endpoint(shop)
    for path in ("", "/test", "/rotate-secret", "/deliveries/dlv_1/redeliver"):
        method = "PATCH" if not path else "POST"
        theirs = f"{other.path}/webhooks/{made['id']}{path}"
        answer = await api.client.request(method, theirs, headers=other.as_owner, json={})
        assert_refused(answer, 404, "NOT_FOUND")
    assert_refused(
        await api.client.get(f"{other.path}/webhooks/{made['id']}/deliveries", headers=other.as_owner), 404, "NOT_FOUND"
    )
    assert_refused(await api.client.get(f"{shop.path}/webhooks", headers=other.as_owner), 403, "FORBIDDEN")
    member = bearer(merchant_token("member-1"))
    assert_refused(await api.client.get(f"{shop.path}/webhooks", headers=member), 403, "FORBIDDEN")
    assert_refused(await api.client.get(f"{shop.path}/webhooks"), 401, "UNAUTHORIZED")


@pytest.mark.rule("limits.34", "POST /merchant/businesses/{businessId}/webhooks/{endpointId}/test")
async def test_a_test_delivery_is_signed_answered_and_not_counted(api: Api) -> None:
    shop = await api.open_shop()
    async with a_receiver() as receiver:
        made = await api.add_endpoint(shop, receiver.origin + "/hooks")
        answer = await api.client.post(f"{shop.path}/webhooks/{made['id']}/test", headers=shop.as_owner)
        result = answer.json()["data"]
        assert set(result) == {"delivered", "statusCode", "durationMs", "error"}
        assert (result["delivered"], result["statusCode"], result["error"]) == (True, 200, None)
        [received] = receiver.received
        body = Webhook(made["signingSecret"]).verify(received.body, received.headers)
        assert (body["type"], body["environment"], body["id"]) == (
            "webhook.test",
            "SANDBOX",
            received.headers["webhook-id"],
        )

        again = await api.client.post(f"{shop.path}/webhooks/{made['id']}/test", headers=shop.as_owner)
        assert_refused(again, 429, "RATE_LIMITED")
        assert 1 <= int(again.headers["retry-after"]) <= 5
        assert len(receiver.received) == 1
    [shown] = await listed(api, shop)
    assert shown["deliverySummary"] == {"successful": 0, "failed": 0}
    page = (await api.client.get(f"{shop.path}/webhooks/{made['id']}/deliveries", headers=shop.as_owner)).json()
    assert page["meta"]["total"] == 0


@pytest.mark.rule("POST /merchant/businesses/{businessId}/webhooks/{endpointId}/test")
async def test_a_failed_test_delivery_says_why(api: Api) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop, "http://127.0.0.1:1/hooks")
    answer = await api.client.post(f"{shop.path}/webhooks/{made['id']}/test", headers=shop.as_owner)
    result = answer.json()["data"]
    assert (result["delivered"], result["statusCode"], result["error"]) == (False, None, "the connection was refused")


@pytest.mark.rule(
    "webhooks.1",
    "GET /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries",
    "POST /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries/{deliveryId}/redeliver",
)
async def test_events_reach_the_endpoints_of_their_environment_that_asked_for_them(api: Api) -> None:
    shop = await api.open_shop()
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

    page = (await api.client.get(f"{shop.path}/webhooks/{every['id']}/deliveries", headers=shop.as_owner)).json()
    assert page["meta"] == {"page": 1, "perPage": 20, "total": 1}
    [row] = page["data"]
    assert set(row) == {
        "id", "eventId", "eventType", "reference", "status", "attempts", "lastStatusCode", "lastError", "durationMs",
        "createdAt", "lastAttemptAt", "nextAttemptAt",
    }  # fmt: skip
    assert (row["eventId"], row["reference"], row["status"]) == (body["id"], reference, "DELIVERED")
    summaries = {shown["id"]: shown["deliverySummary"] for shown in await listed(api, shop)}
    assert summaries[every["id"]] == {"successful": 1, "failed": 0}

    again = await api.client.post(
        f"{shop.path}/webhooks/{every['id']}/deliveries/{row['id']}/redeliver", headers=shop.as_owner
    )
    assert again.json()["data"]["status"] == "PENDING"
    async with a_receiver() as second:
        await change(api, shop, every["id"], url=second.origin + "/moved")
        assert await api.services.dispatcher.run_once() == 1
    assert second.received[0].body == received.body
    assert second.received[0].headers["webhook-id"] == received.headers["webhook-id"]


@pytest.mark.rule("webhooks.4")
async def test_every_change_of_a_payment_is_one_event_in_a_sequence_without_gaps(api: Api) -> None:
    shop = await api.open_shop()
    async with a_receiver() as receiver:
        await api.add_endpoint(shop, receiver.origin)
        reference = (await api.initiate(shop))["reference"]
        card = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
        for _ in range(3):
            await asyncio.gather(
                *(api.client.post(f"/public/payments/{reference}/process", json=card) for _ in range(5)),
                *(api.client.get(f"/public/payments/{reference}/verify") for _ in range(5)),
            )
        while await api.services.dispatcher.run_once():
            pass
    bodies = sorted((json.loads(received.body) for received in receiver.received), key=lambda body: body["sequence"])
    assert [(body["sequence"], body["type"]) for body in bodies] == [(1, "payment.pending"), (2, "payment.success")]


@pytest.mark.rule("POST /merchant/businesses/{businessId}/webhooks/{endpointId}/deliveries/{deliveryId}/redeliver")
async def test_redelivery_to_an_endpoint_that_is_off_is_refused(api: Api) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop)
    await api.paid(shop)
    [row] = (await api.client.get(f"{shop.path}/webhooks/{made['id']}/deliveries", headers=shop.as_owner)).json()[
        "data"
    ]
    await change(api, shop, made["id"], isActive=False)
    path = f"{shop.path}/webhooks/{made['id']}/deliveries"
    answer = await api.client.post(f"{path}/{row['id']}/redeliver", headers=shop.as_owner)
    assert_refused(answer, 400, "VALIDATION_ERROR", "endpointId")
    await change(api, shop, made["id"], isActive=True)
    answer = await api.client.post(f"{path}/dlv_unknown/redeliver", headers=shop.as_owner)
    assert_refused(answer, 404, "NOT_FOUND")


@pytest.mark.rule("webhooks.7", "POST /merchant/businesses/{businessId}/webhooks/{endpointId}/rotate-secret")
async def test_after_rotation_the_old_secret_verifies_for_a_day(api: Api) -> None:
    shop = await api.open_shop()
    async with a_receiver() as receiver:
        made = await api.add_endpoint(shop, receiver.origin)
        answer = await api.client.post(f"{shop.path}/webhooks/{made['id']}/rotate-secret", headers=shop.as_owner)
        rotated = answer.json()["data"]
        assert set(rotated) == FIELDS | {"signingSecret"}
        assert rotated["signingSecret"] != made["signingSecret"]
        assert rotated["secretLast4"] == rotated["signingSecret"][-4:]
        await api.paid(shop)
        await api.services.dispatcher.run_once()
        [received] = receiver.received
        for secret in (made["signingSecret"], rotated["signingSecret"]):
            Webhook(secret).verify(received.body, received.headers)
        async with api.services.store.begin() as tx:
            endpoint = await tx.webhooks.find_endpoint(shop.business.id, made["id"])
        assert endpoint is not None
        now = api.services.clock.now()
        assert len(endpoint.signing_secrets(now + timedelta(hours=23, minutes=59))) == 2
        assert len(endpoint.signing_secrets(now + timedelta(hours=24, minutes=1))) == 1


async def events(api: Api, shop: Shop, **query: Any) -> dict[str, Any]:
    answer = await api.client.get(
        f"{shop.path}/events", headers=shop.as_owner, params={"environment": "SANDBOX", **query}
    )
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def settled_events(api: Api, shop: Shop, count: int) -> dict[str, Any]:
    """The events once they are old enough to be shown."""
    page = await events(api, shop)
    async with asyncio.timeout(30):
        while len(page["events"]) < count:
            await asyncio.sleep(0.1)
            page = await events(api, shop)
    return page


@pytest.mark.rule("GET /merchant/businesses/{businessId}/events")
async def test_past_events_are_paged_by_cursor_exactly_as_sent(api: Api) -> None:
    shop = await api.open_shop()
    other = await api.open_shop()
    references = [await api.paid(shop) for _ in range(5)]
    await api.paid(other)
    whole = await settled_events(api, shop, 5)
    assert [event["data"]["reference"] for event in whole["events"]] == references
    assert (whole["hasMore"], whole["nextCursor"]) == (False, whole["events"][-1]["id"])
    collected, cursor = [], None
    for has_more in (True, True, False):
        page = await events(api, shop, limit=2, **({"after": cursor} if cursor else {}))
        assert page["hasMore"] is has_more
        collected += page["events"]
        cursor = page["nextCursor"]
    assert collected == whole["events"]
    assert await events(api, shop, after=cursor) == {"events": [], "nextCursor": cursor, "hasMore": False}
    assert (await events(api, shop, environment="LIVE"))["events"] == []
    async with api.services.store.begin() as tx:
        stored, _ = await tx.webhooks.of_payment(references[0])
    answer = await api.client.get(f"{shop.path}/events?environment=SANDBOX&limit=1", headers=shop.as_owner)
    assert stored[0].body in answer.content


@pytest.mark.rule("GET /events")
async def test_events_are_read_with_the_secret_key_as_on_the_dashboard(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    for _ in range(3):
        await api.paid(shop)
    await settled_events(api, shop, 3)

    async def read(headers: dict[str, str], **query: Any) -> Any:
        answer = await api.client.get("/events", headers=headers, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    dashboard = await events(api, shop, limit=2)
    assert len(dashboard["events"]) == 2
    assert await read(shop.as_sandbox, limit=2) == dashboard
    rest = await read(shop.as_sandbox, after=dashboard["nextCursor"])
    assert (len(rest["events"]), rest["hasMore"]) == (1, False)
    assert (await read(shop.as_live))["events"] == []
    assert (await read(other.as_sandbox))["events"] == []
    for name, value in (("after", "evt_1"), ("limit", "0")):
        answer = await api.client.get("/events", headers=shop.as_sandbox, params={name: value})
        assert_refused(answer, 400, "VALIDATION_ERROR", name)


async def test_no_event_behind_an_open_transaction_is_shown_before_it(api: Api) -> None:
    """An event drawn early may commit late; a cursor that had passed it by would never come back for it."""
    shop = await api.open_shop()
    slow = str((await api.initiate(shop))["reference"])
    settlement = api.services.settlement
    from payagg.domain.payment import Trigger

    async with api.services.store.begin() as tx:
        payment = await tx.payments.lock(slow)
        assert payment is not None
        await settlement.move(tx, payment, Trigger.SUCCEED, actor="test")
        fast = await api.paid(shop)
        # Longer than the margin for clocks: only the open transaction holds the second event back now.
        await asyncio.sleep(2.5)
        assert (await events(api, shop))["events"] == []
    page = await settled_events(api, shop, 2)
    assert [event["data"]["reference"] for event in page["events"]] == [slow, fast]


async def test_a_test_delivery_whose_secret_cannot_be_opened_says_so(api: Api, store: PostgresStore) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop, "http://127.0.0.1:1/hooks")
    async with store.begin() as tx:
        endpoint = await tx.webhooks.endpoint(shop.business.id, made["id"])
        assert endpoint is not None
        await tx.webhooks.save_endpoint(replace(endpoint, secret=b"gone:" + endpoint.secret))
    answer = await api.client.post(f"{shop.path}/webhooks/{made['id']}/test", headers=shop.as_owner)
    assert answer.status_code == 200
    result = answer.json()["data"]
    assert (result["delivered"], result["error"]) == (False, "the signing secret cannot be opened")


@pytest.mark.rule("reports.16")
async def test_the_log_is_walked_by_cursor_as_by_number(api: Api) -> None:
    shop = await api.open_shop()
    made = await api.add_endpoint(shop)
    for _ in range(5):
        await api.paid(shop)
    path = f"{shop.path}/webhooks/{made['id']}/deliveries"

    async def page(**query: Any) -> Any:
        answer = await api.client.get(path, headers=shop.as_owner, params={"perPage": 2, **query})
        assert answer.status_code == 200, answer.text
        return answer.json()

    by_number = [await page(page=number) for number in (1, 2, 3)]
    by_cursor: list[Any] = []
    after: dict[str, str] = {}
    for _ in range(3):
        by_cursor.append(await page(**after))
        after = {"after": by_cursor[-1]["data"][-1]["id"]}
    assert [one["data"] for one in by_cursor] == [one["data"] for one in by_number]
    assert {one["meta"]["total"] for one in [*by_number, *by_cursor]} == {5}
    assert [one["meta"].get("nextCursor") for one in by_cursor] == [
        None,
        by_cursor[1]["data"][-1]["id"],
        after["after"],
    ]
    end = await page(**after)
    assert (end["data"], end["meta"]["nextCursor"]) == ([], after["after"])
    for query, field in (({"after": "dlv_1"}, "after"), ({"page": "2", **after}, "page")):
        answer = await api.client.get(path, headers=shop.as_owner, params=query)
        assert_refused(answer, 400, "VALIDATION_ERROR", field)
