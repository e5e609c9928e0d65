"""What one business's endpoints and tests may take: over HTTP, with the names of its hosts asked of a real server."""

import asyncio

import httpx
import pytest

from payagg.application.webhooks import endpoints as webhooks
from payagg.domain.webhook import STORED_ENDPOINTS_MAX, TESTS_AT_ONCE
from tests.integration.http.test_webhooks import tried
from tests.support.http_world import Api, Shop, assert_refused
from tests.support.receivers import a_receiver, until


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
