"""API keys over HTTP: limits under concurrency, revocation that holds at once, what is listed."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.business import KycStatus
from tests.support.assembly import services_over
from tests.support.http_world import Api, an_api, assert_refused, bearer

TABLES = Statement("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")


def body(environment: str = "SANDBOX") -> dict[str, Any]:
    return {"environment": environment, "name": "Server"}


@pytest.mark.rule("keys.1", "KYC_REQUIRED", "INVALID_API_KEY", "API_KEY_ALREADY_REVOKED")
@pytest.mark.rule("GET /merchant/businesses/{businessId}/api-keys", "POST /merchant/businesses/{businessId}/api-keys")
@pytest.mark.rule("DELETE /merchant/businesses/{businessId}/api-keys/{keyId}")
async def test_a_key_from_its_generation_to_its_end(api: Api, shared_store: PostgresStore) -> None:
    shop, other = await api.open_shop(keys=()), await api.open_shop()
    path = f"{shop.path}/api-keys"
    key = await api.send("POST", path, shop.as_owner, **body("LIVE"))
    assert set(key) == {"id", "name", "publicKey", "secretKey", "environment", "createdAt", "secretKeyNote"}
    assert (key["secretKey"][:9], key["publicKey"][:9]) == ("ssk_live_", "spk_live_")

    async def used(secret: str = key["secretKey"]) -> httpx.Response:
        return await api.client.get("/payments/context", headers=bearer(secret))

    assert (await used()).status_code == 200
    listed = await api.get(path, shop.as_owner)
    [record] = listed["live"]
    assert (listed["sandbox"], key["secretKey"] in str(listed)) == ([], False)
    assert record["secretKeyDisplay"] == "ssk_live_..." + key["secretKey"][-4:]
    assert record["lastUsedAt"] is not None
    pool = shared_store.pool
    tables = [name for (name,) in await pool.run(TABLES)]
    dump = "".join([str(await pool.run(Statement(f'SELECT CAST(t AS text) FROM "{one}" t'))) for one in tables])
    traces = (key["publicKey"], key["secretKey"], key["secretKey"].encode().hex())
    assert [trace in dump for trace in traces] == [True, False, False]

    await api.change(shop, kyc_status=KycStatus.UNDER_REVIEW)
    assert_refused(await used(), 403, "KYC_REQUIRED")
    assert_refused(await api.client.post(path, headers=shop.as_owner, json=body("LIVE")), 403, "KYC_REQUIRED")
    await api.send("POST", path, shop.as_owner, **body())
    await api.change(shop, kyc_status=KycStatus.APPROVED)
    for theirs in (f"{other.path}/api-keys/{key['id']}", f"{other.path}/api-keys/key_unknown"):
        assert_refused(await api.client.delete(theirs, headers=other.as_owner), 404, "NOT_FOUND")
    assert (await api.client.delete(f"{path}/{key['id']}", headers=shop.as_owner)).json()["data"]["message"]
    # A revoked key answers like one that never was.
    assert_refused(await used(), 401, "INVALID_API_KEY")
    assert (await used()).content == (await used("ssk_live_" + "0" * 48)).content == (await used("ssk_live_0")).content
    again = await api.client.delete(f"{path}/{key['id']}", headers=shop.as_owner)
    assert_refused(again, 409, "API_KEY_ALREADY_REVOKED")
    nowhere = await api.client.post("/merchant/businesses/biz_unknown/api-keys", json=body(), headers=shop.as_owner)
    forbidden = await api.client.post(path, json=body(), headers=other.as_owner)
    assert (nowhere.status_code, nowhere.content) == (forbidden.status_code, forbidden.content)


@pytest.mark.rule("limits.6", "KEY_LIMIT_REACHED")
async def test_twenty_creates_at_once_leave_exactly_five_keys(api: Api) -> None:
    shop = await api.open_shop(keys=())

    async def create() -> httpx.Response:
        return await api.client.post(f"{shop.path}/api-keys", headers=shop.as_owner, json=body())

    answers = await asyncio.gather(*(create() for _ in range(20)))
    assert Counter(answer.status_code for answer in answers) == {201: 5, 409: 15}
    assert_refused(await create(), 409, "KEY_LIMIT_REACHED")
    await api.send("POST", f"{shop.path}/api-keys", shop.as_owner, **body("LIVE"))
    listed = await api.get(f"{shop.path}/api-keys", shop.as_owner)
    assert (len(listed["sandbox"]), len(listed["live"])) == (5, 1)


@pytest.mark.rule("keys.2")
async def test_no_request_after_a_revocation_succeeds_on_any_process(store: PostgresStore, database_url: str) -> None:
    other_store = PostgresStore(database_url, pool_size=10, pgbouncer=False)
    async with an_api(services_over(store)) as api, an_api(services_over(other_store)) as other:
        shop = await api.open_shop()
        for one in (api, other) * 3:  # after which each has cached the key
            await one.get("/payments/context", shop.as_sandbox)
            reference = (await one.initiate(shop))["reference"]
        assert api.services.access.cached.keys() == other.services.access.cached.keys() != set()
        key = (await api.get(f"{shop.path}/api-keys", shop.as_owner))["sandbox"][0]["id"]
        await api.send("DELETE", f"{shop.path}/api-keys/{key}", shop.as_owner)
        for one in (other, api):
            for path in ("/payments/context", f"/payments/{reference}"):
                assert_refused(await one.client.get(path, headers=shop.as_sandbox), 401, "INVALID_API_KEY")
            made = await one.client.post("/payments/initiate", headers=shop.as_sandbox, json={"amount": 500})
            assert_refused(made, 401, "INVALID_API_KEY")
    await other_store.close()
