"""The delivery log of a payment's own webhookUrl over HTTP, and sending one of it again."""

from typing import Any

import pytest

from payagg.application.ports import TryResult
from payagg.application.store import DeliveryResult
from payagg.domain.audit import Action
from tests.support.audit_trail import entries
from tests.support.http_world import Api, Shop, assert_refused, bearer, merchant_token

pytestmark = pytest.mark.anyio
OWN = "https://own.shop.example/of-one-payment"


async def a_paid_one(api: Api, shop: Shop) -> str:
    """The path of its log: one event was sent there and answered with 200, beside that to the endpoint."""
    reference = await api.paid(shop, webhookUrl=OWN)
    await send(api)
    return f"{shop.path}/payments/{reference}/deliveries"


async def send(api: Api) -> list[tuple[str, bytes]]:
    """What went where, all of it answered with 200."""
    now, queue = api.services.clock.now(), api.services.store.queue
    claimed = await queue.claim(now, 10, 5, 5, api.services.dispatcher.lease)
    await queue.finish([DeliveryResult(one, TryResult(200, None, 12), now, None) for one in claimed])
    return [(one.url, one.body) for one in claimed]


async def read(api: Api, shop: Shop, path: str, **query: Any) -> Any:
    answer = await api.client.get(path, headers=shop.as_owner, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.rule("reports.17", "GET /merchant/businesses/{businessId}/payments/{reference}/deliveries")
async def test_what_went_to_a_payment_s_own_address_is_logged(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    endpoint = (await api.add_endpoint(shop))["id"]
    path = await a_paid_one(api, shop)
    page = await read(api, shop, path)
    assert page["meta"] == {"page": 1, "perPage": 20, "total": 1}
    [row] = page["data"]
    [like] = (await read(api, shop, f"{shop.path}/webhooks/{endpoint}/deliveries"))["data"]
    assert set(row) == set(like)
    assert (row["eventId"], row["status"], row["attempts"]) == (like["eventId"], "DELIVERED", 1)
    assert row["id"] != like["id"]
    assert "own.shop" not in str(page)
    assert (await read(api, shop, path, page=2, perPage=1)) == {
        "success": True,
        "data": [],
        "meta": {"page": 2, "perPage": 1, "total": 1},
    }
    assert_refused(
        await api.client.get(path, headers=shop.as_owner, params={"page": 0}), 400, "VALIDATION_ERROR", "page"
    )
    foreign = path.replace(shop.business.id, other.business.id)
    assert_refused(await api.client.get(foreign, headers=other.as_owner), 404, "PAYMENT_NOT_FOUND")
    stranger = bearer(merchant_token("stranger"))
    assert_refused(await api.client.get(path, headers=stranger), 403, "FORBIDDEN")


@pytest.mark.rule(
    "reports.17", "POST /merchant/businesses/{businessId}/payments/{reference}/deliveries/{deliveryId}/redeliver"
)
async def test_what_went_to_a_payment_s_own_address_is_sent_again(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    await api.add_endpoint(shop)
    path = await a_paid_one(api, shop)
    [row] = (await read(api, shop, path))["data"]
    again = await api.client.post(f"{path}/{row['id']}/redeliver", headers=shop.as_owner)
    assert again.status_code == 200, again.text
    assert (again.json()["data"]["id"], again.json()["data"]["status"]) == (row["id"], "PENDING")
    [(url, body)] = await send(api)
    assert url == OWN
    assert row["eventId"].encode() in body
    assert (await read(api, shop, path))["data"][0]["attempts"] == 2
    [entry] = [one for one in await entries(api.services.store) if one.action == Action.DELIVERY_REDELIVER.value]
    assert (entry.object_id, entry.business_id) == (row["id"], shop.business.id)
    foreign = path.replace(shop.business.id, other.business.id)
    refused = await api.client.post(f"{foreign}/{row['id']}/redeliver", headers=other.as_owner)
    assert_refused(refused, 404, "PAYMENT_NOT_FOUND")
    unknown = await api.client.post(f"{path}/dlv_unknown/redeliver", headers=shop.as_owner)
    assert_refused(unknown, 404, "NOT_FOUND")


@pytest.mark.rule("POST /merchant/businesses/{businessId}/payments/{reference}/deliveries/{deliveryId}/redeliver")
async def test_without_a_signing_endpoint_nothing_is_sent_again(api: Api) -> None:
    shop = await api.open_shop()
    endpoint = (await api.add_endpoint(shop))["id"]
    path = await a_paid_one(api, shop)
    [row] = (await read(api, shop, path))["data"]
    await api.client.delete(f"{shop.path}/webhooks/{endpoint}", headers=shop.as_owner)
    await api.add_endpoint(shop, environment="LIVE")
    refused = await api.client.post(f"{path}/{row['id']}/redeliver", headers=shop.as_owner)
    assert_refused(refused, 400, "VALIDATION_ERROR", "reference")
    assert (await read(api, shop, path))["data"] == [row]
