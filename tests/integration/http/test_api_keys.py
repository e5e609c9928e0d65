"""API keys over HTTP: limits under concurrency, revocation that holds at once, what is listed."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.business import BusinessStatus, KycStatus
from tests.support.assembly import services_over
from tests.support.http_world import Api, an_api, assert_refused, bearer

pytestmark = pytest.mark.anyio


def body(environment: str = "SANDBOX", name: str = "Server") -> dict[str, Any]:
    return {"environment": environment, "name": name}


@pytest.mark.rule("keys.1", "POST /merchant/businesses/{businessId}/api-keys")
async def test_a_generated_key_works_and_its_secret_is_shown_once(api: Api, database_url: str) -> None:
    shop = await api.open_shop(keys=())
    answer = await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body("LIVE"))
    assert answer.status_code == 201, answer.text
    key = answer.json()["data"]
    assert set(key) == {"id", "name", "publicKey", "secretKey", "environment", "createdAt", "secretKeyNote"}
    assert key["secretKey"].startswith("ssk_live_")
    assert key["publicKey"].startswith("spk_live_")
    assert (await api.client.get("/payments/context", headers=bearer(key["secretKey"]))).status_code == 200
    listed = await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)
    assert key["secretKey"] not in listed.text
    (record,) = listed.json()["data"]["live"]
    assert record["secretKeyDisplay"] == "ssk_live_..." + key["secretKey"][-4:]
    assert record["lastUsedAt"] is not None
    assert listed.json()["data"]["sandbox"] == []
    with psycopg.connect(database_url) as connection:
        tables = [row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        dump = "".join(str(connection.execute(f'SELECT t::text FROM "{t}" t').fetchall()) for t in tables)
    assert key["publicKey"] in dump
    assert key["secretKey"] not in dump
    assert key["secretKey"].encode().hex() not in dump


@pytest.mark.rule("limits.6")
async def test_twenty_creates_at_once_leave_exactly_five_keys(api: Api) -> None:
    shop = await api.open_shop(keys=())

    async def create() -> httpx.Response:
        return await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body())

    answers = await asyncio.gather(*(create() for _ in range(20)))
    assert Counter(answer.status_code for answer in answers) == {201: 5, 409: 15}
    assert_refused(await create(), 409, "KEY_LIMIT_REACHED")
    live = await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body("LIVE"))
    assert live.status_code == 201
    listed = (await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]
    assert (len(listed["sandbox"]), len(listed["live"])) == (5, 1)
    revoked = await api.client.delete(f"{shop.path}/api-keys/{listed['sandbox'][0]['id']}", headers=shop.as_owner)
    assert revoked.status_code == 200
    assert (await create()).status_code == 201


@pytest.mark.rule("keys.2")
@pytest.mark.parametrize(("method", "path"), [("GET", "/payments/context"), ("POST", "/payments/initiate")])
async def test_no_request_that_starts_after_the_revocation_succeeds_on_any_process(
    api: Api, database_url: str, method: str, path: str
) -> None:
    shop = await api.open_shop()
    other_store = PostgresStore(database_url, pool_size=10, pgbouncer=False)
    answered = False
    warm = asyncio.Event()
    late: list[int] = []
    before: Counter[int] = Counter()

    async def hammer(client: httpx.AsyncClient) -> None:
        while len(late) < 100:
            started_after = answered
            body = {"amount": 500} if method == "POST" else None
            status = (await client.request(method, path, headers=shop.as_sandbox, json=body)).status_code
            if started_after:
                late.append(status)
            else:
                before[status] += 1
                if before[200] + before[201] >= 50:
                    warm.set()

    async with an_api(services_over(other_store)) as other:
        clients = [asyncio.create_task(hammer(c)) for c in (api.client, other.client) for _ in range(8)]
        await warm.wait()
        listed = await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)
        key = listed.json()["data"]["sandbox"][0]["id"]
        revoked = await api.client.delete(f"{shop.path}/api-keys/{key}", headers=shop.as_owner)
        answered = True
        assert revoked.json()["data"]["message"]
        await asyncio.gather(*clients)
    await other_store.close()
    assert set(late) == {401}


@pytest.mark.rule(
    "DELETE /merchant/businesses/{businessId}/api-keys/{keyId}", "INVALID_API_KEY", "API_KEY_ALREADY_REVOKED"
)
async def test_a_revoked_key_answers_like_one_that_never_was(api: Api) -> None:
    shop = await api.open_shop()
    key = (await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]["sandbox"][0]
    await api.client.delete(f"{shop.path}/api-keys/{key['id']}", headers=shop.as_owner)
    revoked = await api.client.get("/payments/context", headers=shop.as_sandbox)
    unknown = await api.client.get("/payments/context", headers=bearer("ssk_sand_" + "0" * 48))
    malformed = await api.client.get("/payments/context", headers=bearer("ssk_sand_0"))
    assert_refused(revoked, 401, "INVALID_API_KEY")
    assert revoked.content == unknown.content == malformed.content
    again = await api.client.delete(f"{shop.path}/api-keys/{key['id']}", headers=shop.as_owner)
    assert_refused(again, 409, "API_KEY_ALREADY_REVOKED")


@pytest.mark.rule("limits.7", "GET /merchant/businesses/{businessId}/api-keys")
async def test_the_twenty_most_recently_revoked_keys_are_listed_after_the_active_ones(api: Api) -> None:
    shop = await api.open_shop(keys=())
    revoked = []
    for number in range(22):
        created = await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body(name=f"k{number:02}"))
        revoked.append(created.json()["data"]["id"])
        await api.client.delete(f"{shop.path}/api-keys/{revoked[-1]}", headers=shop.as_owner)
    active = await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body(name="active"))
    listed = (await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]["sandbox"]
    assert [record["id"] for record in listed] == [active.json()["data"]["id"], *reversed(revoked[2:])]
    assert {record["status"] for record in listed[1:]} == {"REVOKED"}


@pytest.mark.rule("keys.4")
async def test_a_restricted_business_can_revoke_and_nothing_else(api: Api) -> None:
    shop = await api.open_shop()
    key = (await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]["sandbox"][0]
    await api.change(shop, status=BusinessStatus.SUSPENDED)
    assert_refused(await api.client.get("/payments/context", headers=shop.as_sandbox), 403, "BUSINESS_RESTRICTED")
    listed = await api.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)
    assert_refused(listed, 403, "BUSINESS_RESTRICTED")
    created = await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body())
    assert_refused(created, 403, "BUSINESS_RESTRICTED")
    revoked = await api.client.delete(f"{shop.path}/api-keys/{key['id']}", headers=shop.as_owner)
    assert revoked.status_code == 200


@pytest.mark.rule("KYC_REQUIRED")
async def test_a_live_key_stops_when_the_kyc_leaves_approved(api: Api) -> None:
    shop = await api.open_shop()
    assert (await api.client.get("/payments/context", headers=shop.as_live)).status_code == 200
    await api.change(shop, kyc_status=KycStatus.UNDER_REVIEW)
    assert_refused(await api.client.get("/payments/context", headers=shop.as_live), 403, "KYC_REQUIRED")
    assert (await api.client.get("/payments/context", headers=shop.as_sandbox)).status_code == 200
    assert_refused(
        await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body("LIVE")), 403, "KYC_REQUIRED"
    )


async def test_a_key_or_business_of_others_answers_like_one_that_never_was(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    path = f"{shop.path}/api-keys"
    theirs = (await api.client.get(f"{other.path}/api-keys", headers=other.as_owner)).json()["data"]["live"][0]["id"]
    for key in (theirs, "key_unknown"):
        assert_refused(await api.client.delete(f"{path}/{key}", headers=shop.as_owner), 404, "NOT_FOUND")
    nowhere = await api.client.post("/merchant/businesses/biz_unknown/api-keys", json=body(), headers=shop.as_owner)
    forbidden = await api.client.post(path, json=body(), headers=other.as_owner)
    assert (nowhere.status_code, nowhere.content) == (forbidden.status_code, forbidden.content)
