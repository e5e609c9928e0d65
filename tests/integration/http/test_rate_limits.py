"""Limits per key, reference and address: counted in memory, told in headers, and none of them is another's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from payagg_testing.clocks import ManualClock

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.http.server import rate_limits
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, Shop, an_api, assert_refused, bearer

SECOND = timedelta(seconds=1)
CARD = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}


@asynccontextmanager
async def limited(store: PostgresStore, **settings: Any) -> AsyncIterator[tuple[Api, Shop, ManualClock]]:
    """A server with such limits, a shop of it and its clock."""
    clock = ManualClock()
    async with an_api(services_over(store, replace(SETTINGS, **settings), clock)) as api:
        yield api, await api.open_shop(), clock


def assert_full(answer: httpx.Response, seconds: int) -> None:
    assert_refused(answer, 429, "RATE_LIMITED")
    assert answer.headers["retry-after"] == str(seconds)
    assert "r=0" in answer.headers["ratelimit"]


async def test_managers_of_a_business_make_so_many_changes_a_minute(
    shared_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each leaves an entry in the audit trail, which is kept for good."""
    monkeypatch.setattr(rate_limits, "CHANGES_A_MINUTE", 3)
    async with limited(shared_store) as (api, shop, clock):
        other, made = await api.open_shop(), await api.add_endpoint(shop)
        path = f"{shop.path}/webhooks/{made['id']}"
        changes = [await api.client.patch(path, headers=shop.as_owner, json={"description": n}) for n in "abc"]
        assert [answer.status_code for answer in changes] == [200, 200, 429]
        assert_refused(changes[-1], 429, "RATE_LIMITED")
        assert changes[-1].headers["retry-after"] == "20"
        assert [one["description"] for one in await api.get(f"{shop.path}/webhooks", shop.as_owner)] == ["b"]
        await api.add_endpoint(other)
        clock.move(20 * SECOND)
        assert (await api.client.patch(path, headers=shop.as_owner, json={"description": "d"})).status_code == 200


@pytest.mark.rule("limits.29")
async def test_a_key_has_a_bucket_of_its_own(shared_store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async with limited(shared_store, key_rate_limit=10, business_rate_limit=100) as (api, shop, clock):
        reference = (await api.initiate(shop))["reference"]
        seen = [await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox) for _ in range(9)]
        assert {answer.status_code for answer in seen} == {200}
        # Every answer tells, also of its business's once this process remembers whose the key is.
        told = [answer.headers["ratelimit"] for answer in seen[:2]]
        assert told == ['"key";r=8;t=12', '"key";r=7;t=18, "business";r=99;t=1']
        assert seen[-1].headers["ratelimit-policy"] == '"key";q=10;w=60, "business";q=100;w=60'

        asked: list[Any] = []
        monkeypatch.setattr(shared_store, "find_key", lambda *call: asked.append(call))
        monkeypatch.setattr(shared_store, "find_payment", lambda *call: asked.append(call))
        for path in ("/payments/context", f"/payments/{reference}"):
            assert_full(await api.client.get(path, headers=shop.as_sandbox), 6)
        assert_full(await api.client.post("/payments/initiate", headers=shop.as_sandbox, json={"amount": 100}), 6)
        assert_full(await api.client.post(f"/payments/{reference}/simulate", headers=shop.as_sandbox, json={}), 6)
        assert asked == []  # a flood does not reach the database
        monkeypatch.undo()

        assert (await api.client.get("/payments/context", headers=shop.as_live)).status_code == 200
        clock.move(6.1 * SECOND)
        assert (await api.client.get("/payments/context", headers=shop.as_sandbox)).status_code == 200
        assert_full(await api.client.get("/payments/context", headers=shop.as_sandbox), 6)


@pytest.mark.rule("limits.30")
async def test_the_keys_of_a_business_and_environment_share_a_bucket(
    shared_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with limited(shared_store, business_rate_limit=3) as (api, shop, _):
        other = await api.open_shop()
        body = {"environment": "SANDBOX", "name": "second"}
        second = bearer((await api.send("POST", f"{shop.path}/api-keys", shop.as_owner, **body))["secretKey"])
        callers = (shop.as_sandbox, second, shop.as_live, other.as_sandbox)
        for headers in (*callers, *callers):  # before a process remembers whose a key is
            assert (await api.client.get("/payments/context", headers=headers)).status_code == 200
        for headers in (shop.as_sandbox, second, second):
            assert (await api.client.get("/payments/context", headers=headers)).status_code == 200
        asked: list[Any] = []
        monkeypatch.setattr(shared_store, "find_key", lambda *call: asked.append(call))
        for headers in (shop.as_sandbox, second):
            refused = await api.client.get("/payments/context", headers=headers)
            assert_full(refused, 20)
            assert refused.headers["ratelimit"].endswith('"business";r=0;t=60')
        assert asked == []
        monkeypatch.undo()
        for headers in (shop.as_live, other.as_sandbox):
            assert (await api.client.get("/payments/context", headers=headers)).status_code == 200


@pytest.mark.rule("limits.38")
async def test_a_business_sends_so_many_bytes_a_day(shared_store: PostgresStore) -> None:
    async with limited(shared_store, sandbox_bytes_a_day=100_000) as (api, shop, _):
        other = await api.open_shop()
        large = {"amount": 100, "metadata": {f"note {n}": "x" * 1_000 for n in range(15)}}

        async def send(headers: dict[str, str]) -> httpx.Response:
            return await api.client.post("/payments/initiate", headers=headers, json=large)

        for _ in range(2):  # after which this process remembers whose the key is
            await api.client.get("/payments/context", headers=shop.as_sandbox)
        answers = [await send(shop.as_sandbox) for _ in range(7)]
        assert [answer.status_code for answer in answers] == [201] * 6 + [429]
        assert_refused(answers[-1], 429, "RATE_LIMITED")
        reference = answers[0].json()["data"]["reference"]
        assert (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).status_code == 200
        assert (await send(other.as_sandbox)).status_code == 201
        assert (await send(shop.as_live)).status_code == 503  # no provider is connected: it was let through
        # Six of about 15 KB fit; what the seventh lacks comes back evenly over the day.
        assert 1 < int(answers[-1].headers["retry-after"]) < 86_400


@pytest.mark.rule("limits.30")
async def test_a_key_that_is_unknown_or_revoked_takes_nothing_of_others(shared_store: PostgresStore) -> None:
    async with limited(shared_store, business_rate_limit=3) as (api, shop, clock):
        for n in range(5):
            stranger = bearer(f"ssk_sand_{n:048x}")
            assert_refused(await api.client.get("/payments/context", headers=stranger), 401, "INVALID_API_KEY")
        keys = f"{shop.path}/api-keys"
        made = await api.send("POST", keys, shop.as_owner, environment="SANDBOX", name="leaked")
        leaked = bearer(made["secretKey"])
        assert (await api.client.get("/payments/context", headers=leaked)).status_code == 200
        await api.send("DELETE", f"{keys}/{made['id']}", shop.as_owner)
        for wait in (0 * SECOND, 61 * SECOND, *[0 * SECOND] * 9):
            clock.move(wait)
            assert_refused(await api.client.get("/payments/context", headers=leaked), 401, "INVALID_API_KEY")
        for _ in range(4):
            assert (await api.client.get("/payments/context", headers=shop.as_sandbox)).status_code == 200


@pytest.mark.rule("limits.31")
async def test_a_checkout_link_has_a_bucket_of_its_own(shared_store: PostgresStore) -> None:
    async with limited(shared_store, reference_rate_limit=4) as (api, shop, clock):
        one, other = [(await api.initiate(shop))["reference"] for _ in range(2)]
        assert (await api.client.post(f"/public/payments/{one}/process", json=CARD)).status_code == 200
        seen = [await api.client.get(f"/public/payments/{one}{path}") for path in ("/verify", "", "/gateways")]
        assert [answer.status_code for answer in seen] == [200] * 3
        told = [answer.headers["ratelimit"].split(", ")[-1] for answer in seen[1:]]
        assert told == ['"reference";r=1;t=45', '"reference";r=0;t=60']
        assert seen[1].headers["ratelimit-policy"] == '"reference";q=4;w=60'
        for path in ("/verify", "", "/gateways"):
            assert_full(await api.client.get(f"/public/payments/{one}{path}"), 15)
        assert_full(await api.client.post(f"/public/payments/{one}/process", json=CARD), 15)
        assert (await api.client.get(f"/public/payments/{other}/verify")).status_code == 200
        assert (await api.client.get(f"/payments/{one}", headers=shop.as_sandbox)).status_code == 200
        clock.move(15.1 * SECOND)
        assert (await api.client.get(f"/public/payments/{one}/verify")).status_code == 200


@pytest.mark.rule("limits.26", "limits.27", "limits.32")
async def test_an_address_has_a_limit_that_guesses_and_full_references_do_not_use_up(store: PostgresStore) -> None:
    few = {"address_rate_limit": 4, "reference_rate_limit": 2, "unknown_reference_limit": 3}
    async with limited(store, **few) as (api, shop, clock):
        one, two, three, four = [(await api.initiate(shop))["reference"] for _ in range(4)]
        for n in range(6):
            guess = await api.client.get(f"/public/payments/PAY-20250131-AAAAA{n}/verify")
            assert guess.status_code == (404 if n < 3 else 429)
            assert (await api.client.get("/public/payments/nonsense/verify")).status_code == 400
        guess = await api.client.get("/public/payments/PAY-20250131-BBBBBB", headers={"X-Forwarded-For": "203.0.113.9"})
        assert_full(guess, int(guess.headers["retry-after"]))
        assert guess.headers["ratelimit"] == f'"minute";r=0;t={guess.headers["retry-after"]}'
        # Payers behind the same address go on.
        for tail in ("", "/gateways"):
            assert (await api.client.get(f"/public/payments/{four}{tail}")).status_code == 200
        assert (await api.client.get(f"/payments/{four}", headers=shop.as_sandbox)).status_code == 200
        statuses = [(await api.client.get(f"/public/payments/{one}/verify")).status_code for _ in range(5)]
        assert statuses == [200, 200, 429, 429, 429]
        for _ in range(2):
            assert (await api.client.get(f"/public/payments/{two}/verify")).status_code == 200
        assert_refused(await api.client.get(f"/public/payments/{three}/verify"), 429, "RATE_LIMITED")
        clock.move(60 * SECOND)
        assert (await api.client.get(f"/public/payments/{three}/verify")).status_code == 200


WRONG = {
    "malformed": b'{"gatewaySlug":',
    "of another type": b'{"cardNumber":1}',
    "of unknown names": b'{"gatewaySlug":"nobody"}',
    "too large": b" " * 1025,
}


@pytest.mark.rule("limits.33")
async def test_refused_bodies_of_public_routes_are_limited_per_address(store: PostgresStore) -> None:
    async with limited(store, refused_body_limit=3) as (api, shop, clock):
        headers = {"Content-Type": "application/json"}
        for kind, body in WRONG.items():
            path = f"/public/payments/{(await api.initiate(shop))['reference']}/process"
            seen = [await api.client.post(path, content=body, headers=headers) for _ in range(5)]
            assert [answer.status_code for answer in seen[3:]] == [429, 429], kind
            assert {answer.status_code for answer in seen[:3]} <= {400, 413}
            assert_full(seen[-1], 20)
            # Who shares the address still pays, and who has a credential is not counted by address.
            assert (await api.client.post(path, json=CARD)).status_code == 200
            merchant = await api.client.post("/payments/initiate", content=body, headers=headers | shop.as_sandbox)
            assert merchant.status_code in (400, 413)
            clock.move(60 * SECOND)


@pytest.mark.rule("limits.11")
async def test_a_site_of_ipv6_clients_has_ten_times_the_limit_of_one(store: PostgresStore) -> None:
    settings = {"trusted_proxies": (ip_network("127.0.0.0/8"),), "webhook_rate_limit": 2, "address_rate_limit": 2}
    async with limited(store, **settings) as (api, shop, _):
        one = (await api.initiate(shop))["reference"]

        async def ask(call: tuple[str, str], client: str) -> int:
            return (await api.client.request(*call, headers={"X-Forwarded-For": client})).status_code

        event, verify = ("POST", "/webhooks/provider_b/live"), ("GET", f"/public/payments/{one}/verify")
        for call, taken in ((event, 400), (verify, 200)):
            assert [await ask(call, f"2001:db8:7:1::{n}") for n in range(3)] == [taken, taken, 429]
            assert [await ask(call, f"2001:db8:7:{2 + n // 2}:{n}::1") for n in range(19)] == [taken] * 18 + [429]
            assert await ask(call, "2001:db8:8::1") == taken
