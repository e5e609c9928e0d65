"""What one business's endpoints and tests may take: over HTTP, with the names of its hosts asked of a real server."""

import asyncio

import httpx
import pytest

from payagg.application import webhooks
from payagg.domain.webhook import STORED_ENDPOINTS_MAX, TESTS_A_MINUTE, TESTS_AT_ONCE
from tests.integration.http.test_http_webhooks import create, listed
from tests.support.http_world import Api, Shop, assert_refused
from tests.support.receivers import a_receiver, until

pytestmark = pytest.mark.anyio


async def tried(api: Api, shop: Shop, endpoint_id: str) -> httpx.Response:
    return await api.client.post(f"{shop.path}/webhooks/{endpoint_id}/test", headers=shop.as_owner)


async def deleted(api: Api, shop: Shop, endpoint_id: str, **query: str) -> httpx.Response:
    return await api.client.delete(f"{shop.path}/webhooks/{endpoint_id}", headers=shop.as_owner, params=query)


async def test_a_business_stores_so_many_endpoints_in_an_environment_and_removing_one_makes_room(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    for _ in range(STORED_ENDPOINTS_MAX):
        made = await create(api, shop)
        assert (await deleted(api, shop, made["id"])).status_code == 200
    body = {"url": "https://shop.example/hooks", "environment": "SANDBOX"}
    refused = await api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body)
    assert_refused(refused, 409, "WEBHOOK_LIMIT_REACHED")
    assert "permanently=true" in refused.json()["error"]["message"]
    await create(api, shop, environment="LIVE")
    await create(api, other)

    # Switching off again removes nothing, however often.
    assert (await deleted(api, shop, made["id"])).status_code == 200
    for odd in ("yes", ""):
        assert_refused(await deleted(api, shop, made["id"], permanently=odd), 400, "VALIDATION_ERROR", "permanently")
    assert len(await listed(api, shop)) == STORED_ENDPOINTS_MAX + 1
    gone = await deleted(api, shop, made["id"], permanently="true")
    assert (gone.status_code, gone.json()["data"]["id"], gone.json()["data"]["isActive"]) == (200, made["id"], False)
    assert made["id"] not in {one["id"] for one in await listed(api, shop)}
    for answer in (
        await deleted(api, shop, made["id"], permanently="true"),
        await tried(api, shop, made["id"]),
        await api.client.get(f"{shop.path}/webhooks/{made['id']}/deliveries", headers=shop.as_owner),
    ):
        assert_refused(answer, 404, "NOT_FOUND")
    await create(api, shop)


async def test_creations_at_once_leave_no_more_endpoints_than_may_be_stored(api: Api) -> None:
    shop = await api.open_shop()
    for _ in range(STORED_ENDPOINTS_MAX - 1):
        await deleted(api, shop, (await create(api, shop))["id"])
    body = {"url": "https://shop.example/hooks", "environment": "SANDBOX"}
    answers = await asyncio.gather(
        *(api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 4


async def test_a_business_may_run_so_many_tests_at_once(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    async with a_receiver() as receiver:
        receiver.holding = asyncio.Event()
        made = [await create(api, shop, receiver.origin) for _ in range(TESTS_AT_ONCE + 1)]
        theirs = await create(api, other, receiver.origin)
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


async def test_a_business_may_run_so_many_tests_a_minute(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TESTS_A_MINUTE", 2)
    shop, other = await api.open_shop(), await api.open_shop()
    made = [await create(api, shop, "http://127.0.0.1:1/") for _ in range(3)]
    for one in made:
        await deleted(api, shop, one["id"])  # an endpoint that is off can be tested, too
    answers = [await tried(api, shop, one["id"]) for one in made]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert_refused(answers[2], 429, "RATE_LIMITED")
    assert 1 <= int(answers[2].headers["retry-after"]) <= 60
    assert (await tried(api, other, (await create(api, other, "http://127.0.0.1:1/"))["id"])).status_code == 200


def test_the_limits_are_such_that_a_person_does_not_meet_them() -> None:
    # Five active endpoints, each tested once in a row, three times a minute.
    assert TESTS_A_MINUTE >= 15
    assert TESTS_AT_ONCE >= 2
