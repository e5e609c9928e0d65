"""The router before three cells, each with its own database: whose request it is decides where it goes."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.entrypoints.route.messages import KEPT_BYTES
from payagg.entrypoints.route.metrics import REQUESTS, UNREACHABLE
from tests.support.cell_world import BY, NAMES, CellWorld, three_cells
from tests.support.http_world import Shop, admin_token, assert_refused, bearer, raw

pytestmark = pytest.mark.anyio
_INBOX = Statement("SELECT id FROM inbox")
CARD = "4242424242424242"
WEBHOOK_SECRET = "sk_test_" + "a" * 40


@pytest.fixture(scope="module")
async def world(new_database: Callable[[], AbstractContextManager[str]]) -> AsyncIterator[CellWorld]:
    """One for all tests here: each opens shops of its own. Who kills a cell, or looks at limits, has a world alone."""
    with new_database() as home, new_database() as second, new_database() as third:
        async with three_cells([home, second, third]) as world:
            yield world


async def initiated(world: CellWorld, shop: Shop, **body: Any) -> str:
    answer = await world.client.post("/payments/initiate", json={"amount": 150000, **body}, headers=shop.as_sandbox)
    assert answer.status_code == 201, answer.text
    reference: str = answer.json()["data"]["reference"]
    return reference


async def journey(world: CellWorld, shop: Shop) -> str:
    """Initiate, pay at the hosted page's endpoints, and read as the merchant; the reference."""
    reference = await initiated(world, shop)
    for _ in range(2):
        (await world.client.get(f"/public/payments/{reference}")).raise_for_status()
    paid = await world.client.post(
        f"/public/payments/{reference}/process", json={"gatewaySlug": "sandbox", "cardNumber": CARD}
    )
    paid.raise_for_status()
    (await world.client.get(f"/public/payments/{reference}/verify")).raise_for_status()
    read = await world.client.get(f"/payments/{reference}", headers=shop.as_sandbox)
    assert read.json()["data"]["status"] == "SUCCESS", read.text
    return reference


async def test_a_journey_stays_in_the_cell_of_its_business(world: CellWorld) -> None:
    for name, shop in (await world.shops()).items():
        reference = await journey(world, shop)
        assert reference.startswith(name)
        for other, cell in world.cells.items():
            found = await cell.api.client.get(f"/public/payments/{reference}")
            assert found.status_code == (200 if other == name else 404)


async def test_a_key_decides_what_it_may_know_of_any_reference(world: CellWorld) -> None:
    shops = await world.shops()
    reference = await initiated(world, shops["PBX"])
    assert_refused(
        await world.client.get(f"/payments/{reference}", headers=shops["PAY"].as_sandbox), 404, "PAYMENT_NOT_FOUND"
    )


async def test_a_business_is_found_by_its_path_and_the_lists_are_one(world: CellWorld) -> None:
    shops = await world.shops()
    owner = shops["PAY"].as_owner
    for shop in shops.values():
        read = await world.client.get(shop.path, headers=owner)
        assert read.json()["data"]["id"] == shop.business.id
    listed = (await world.client.get("/merchant/businesses", headers=owner)).json()["data"]["businesses"]
    assert {one["id"] for one in listed} == {shop.business.id for shop in shops.values()}
    assert_refused(await world.client.get("/merchant/businesses"), 401, "UNAUTHORIZED")


OURS = "https://shop.example"


@pytest.fixture
async def own_world(database_urls: list[str]) -> AsyncIterator[CellWorld]:
    async with three_cells(database_urls, cors_origins=(OURS,), unknown_reference_limit=5) as world:
        yield world


async def test_a_dead_cell_stops_its_own_businesses_alone(own_world: CellWorld) -> None:
    world = own_world
    shops = await world.shops()
    references = {name: await initiated(world, shop) for name, shop in shops.items()}
    await world.cells["PBX"].kill()
    for name, shop in shops.items():
        read = await world.client.get(f"/payments/{references[name]}", headers=shop.as_sandbox)
        page = await world.client.get(f"/public/payments/{references[name]}")
        own = await world.client.get(shop.path, headers=shop.as_owner)
        for answer in (read, page, own):
            if name == "PBX":
                assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
                assert int(answer.headers["retry-after"]) >= 1
            else:
                assert answer.status_code == 200
    # A key that the router has not met, and that nobody who answers knows, may be the dead cell's.
    assert_refused(
        await world.client.get("/payments/context", headers=bearer("ssk_sand_" + "0" * 48)), 503, "SERVICE_UNAVAILABLE"
    )
    listed = await world.client.get("/merchant/businesses", headers=shops["PAY"].as_owner)
    assert listed.headers["x-payagg-cells-away"] == "PBX"
    assert len(listed.json()["data"]["businesses"]) == 2
    await journey(world, shops["PAY"])


async def test_unknown_keys_are_refused_and_guesses_are_limited(own_world: CellWorld) -> None:
    world = own_world
    shops = await world.shops()
    assert_refused(await world.client.get("/payments/context"), 401, "UNAUTHORIZED")
    assert_refused(await world.client.get("/payments/context", headers=bearer("ssk_sand_x")), 401, "INVALID_API_KEY")
    await initiated(world, shops["PCX"])
    guesses = [bearer(f"ssk_sand_{number:048x}") for number in range(8)]
    codes = [(await world.client.get("/payments/context", headers=key)).status_code for key in guesses]
    assert codes == [401] * 5 + [429] * 3
    await initiated(world, shops["PCX"])
    # Named origins alone read what the router says of itself.
    for wanted in (200, 503):
        for origin, is_told in ((OURS, True), ("https://evil.example", False)):
            headers = shops["PBX"].as_owner | {"Origin": origin}
            answer = await world.client.get("/merchant/businesses", headers=headers)
            assert answer.status_code == wanted
            assert (answer.headers.get_list("access-control-allow-origin") == [origin]) is is_told
        for cell in world.cells.values():
            await cell.kill()


async def test_a_revoked_key_is_refused_and_a_new_one_works_at_once(world: CellWorld) -> None:
    shop = (await world.shops())["PBX"]
    await initiated(world, shop)
    keys = (await world.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]["sandbox"]
    gone = await world.client.delete(f"{shop.path}/api-keys/{keys[0]['id']}", headers=shop.as_owner)
    gone.raise_for_status()
    for _ in range(3):
        assert_refused(await world.client.get("/payments/context", headers=shop.as_sandbox), 401, "INVALID_API_KEY")
    made = await world.client.post(
        f"{shop.path}/api-keys", json={"environment": "SANDBOX", "name": "New"}, headers=shop.as_owner
    )
    fresh = bearer(made.json()["data"]["secretKey"])
    assert (await world.client.get("/payments/context", headers=fresh)).status_code == 200


async def test_what_moved_is_followed_and_remembered(world: CellWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    shops = await world.shops()
    shop = shops["PBX"]
    reference = await initiated(world, shop)
    # The router thinks that everything of this business is in PAY, as it would after a move that it has not heard of.
    proxy, sent = world.router._proxy, []
    proxy.directory._entries.clear()
    await initiated(world, shop)
    send = type(proxy.cells["PAY"]).send

    async def misdirected(self: Any, method: str, target: bytes, headers: Any, body: Any) -> httpx.Response:
        sent.append(self.name)
        if self.name == "PAY":
            return httpx.Response(421, headers={"X-Payagg-Cell": "PBX"}, stream=httpx.ByteStream(b""))
        return await send(self, method, target, headers, body)

    (place,) = [place for place in proxy.directory._entries if place.by.value == "key"]
    proxy.directory.keep(place, "PAY")
    monkeypatch.setattr(type(proxy.cells["PAY"]), "send", misdirected)
    again = await world.client.post(
        "/payments/initiate", json={"amount": 777, "idempotencyKey": "moved"}, headers=shop.as_sandbox
    )
    assert again.status_code == 201
    assert again.json()["data"]["amount"] == 777
    assert sent == ["PAY", "PBX"]
    assert (await world.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).status_code == 200
    assert sent == ["PAY", "PBX", "PBX"]


async def test_administrators_reach_gateways_at_home_and_any_cell_by_its_name(world: CellWorld) -> None:
    as_admin = bearer(admin_token())
    made = await world.client.post("/admin/gateways", json={"slug": "acme", "name": "Acme"}, headers=as_admin)
    assert made.status_code == 201
    in_cell = await world.client.post(
        "/admin/businesses",
        json={"name": "A shop", "owner": "owner-9"},
        headers={**as_admin, "X-Payagg-Cell": "PCX"},
    )
    assert in_cell.status_code == 201, in_cell.text
    business = in_cell.json()["data"]["id"]
    assert (await world.cells["PCX"].api.client.get(f"/admin/businesses/{business}", headers=as_admin)).is_success
    assert (await world.client.get(f"/admin/businesses/{business}", headers=as_admin)).is_success
    wrong = await world.client.get("/admin/businesses", headers={**as_admin, "X-Payagg-Cell": "XXX"})
    assert_refused(wrong, 400, "VALIDATION_ERROR", "X-Payagg-Cell")


async def test_what_is_between_cells_is_not_reached_from_outside(world: CellWorld) -> None:
    secret = bearer(str(world.settings.cell_secret))
    for path in ("/internal/cell", "/internal/cell/gateways", "/internal/cell/keys/" + "0" * 64):
        assert_refused(await world.client.get(world.origin + path, headers=secret), 404, "NOT_FOUND")


async def test_headers_of_one_hop_stay_and_the_client_is_told(world: CellWorld) -> None:
    shop = (await world.shops())["PBX"]
    answer = await world.client.get(
        "/payments/context",
        headers={**shop.as_sandbox, "X-Request-Id": "request-of-mine", "Connection": "keep-alive, x-odd", "X-Odd": "1"},
    )
    assert answer.headers["x-request-id"] == "request-of-mine"
    assert len(answer.headers.get_list("date")) == 1
    assert "x-payagg-cell" not in answer.headers
    missing = await world.client.get("/nothing")
    assert_refused(missing, 404, "NOT_FOUND")
    head = await world.client.head("/payments/context", headers=shop.as_sandbox)
    assert (head.status_code, head.content) == (200, b"")


async def test_long_bodies_go_through_whole(world: CellWorld) -> None:
    as_admin = bearer(admin_token())
    gateways = (await world.client.get("/admin/gateways", headers=as_admin)).json()["data"]
    [gateway] = [one["id"] for one in gateways if one["slug"] == "provider_a"]
    credentials = {f"name{number}": "v" * 4000 for number in range(40)}
    assert len(json.dumps(credentials)) > 2 * KEPT_BYTES
    stored = await world.client.patch(
        f"/admin/gateways/{gateway}/credentials", json={"credentials": credentials}, headers=as_admin
    )
    assert stored.status_code == 200, stored.text

    async def parts() -> AsyncIterator[bytes]:
        whole = json.dumps({"credentials": credentials}).encode()
        for at in range(0, len(whole), 10_000):
            yield whole[at : at + 10_000]

    chunked = await world.client.patch(
        f"/admin/gateways/{gateway}/credentials",
        content=parts(),
        headers={**as_admin, "Content-Type": "application/json"},
    )
    assert chunked.status_code == 200, chunked.text
    too_long = await world.client.post("/payments/initiate", content=b"x" * 200_000, headers=as_admin)
    assert too_long.status_code in (401, 413)


async def ready_for_events(world: CellWorld) -> None:
    home = world.cells["PAY"].api.services
    [gateway] = [one.id for one in await home.gateways.listed() if one.slug == "provider_a"]
    await home.gateways.set_credentials(
        gateway, UpdateCredentials(credentials={"sandboxSecretKey": WEBHOOK_SECRET}), by=BY
    )
    await home.gateways.enable(gateway, by=BY)
    for name in NAMES[1:]:
        copies = world.cells[name].api.services.gateway_copies
        assert copies is not None
        await copies.pull()


def event_about(reference: str) -> tuple[bytes, dict[str, str]]:
    data = {"id": 5, "domain": "test", "status": "success", "reference": reference, "amount": 150000, "currency": "NGN"}
    body = json.dumps({"event": "charge.success", "data": data}).encode()
    return body, {"x-provider_a-signature": hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha512).hexdigest()}


async def inbox_of(world: CellWorld, name: str) -> int:
    store: Any = world.cells[name].api.services.store
    return len(await store.pool.run(_INBOX))


async def test_an_event_that_reaches_another_cell_arrives_once_in_its_own(own_world: CellWorld) -> None:
    world = own_world
    shops = await world.shops()
    await ready_for_events(world)
    reference = await initiated(world, shops["PBX"])
    body, signature = event_about(reference)
    for name in ("PCX", "PAY", "PBX"):
        told = await world.cells[name].api.client.post("/webhooks/provider_a/sandbox", content=body, headers=signature)
        assert told.status_code == 200, told.text
    assert (await world.client.post("/webhooks/provider_a/sandbox", content=body, headers=signature)).status_code == 200
    assert [await inbox_of(world, name) for name in NAMES] == [0, 1, 0]
    forged = await world.cells["PCX"].api.client.post(
        "/webhooks/provider_a/sandbox", content=body, headers={"x-provider_a-signature": "0" * 128}
    )
    assert_refused(forged, 400, "INVALID_WEBHOOK_SIGNATURE")
    await world.cells["PBX"].kill()
    late = await world.cells["PCX"].api.client.post("/webhooks/provider_a/sandbox", content=body, headers=signature)
    assert_refused(late, 503, "SERVICE_UNAVAILABLE")
    # One about nobody's reference is kept where it came.
    body, signature = event_about("OLD-20250131-7K2M9X")
    told = await world.client.post("/webhooks/provider_a/sandbox", content=body, headers=signature)
    assert told.status_code == 200
    assert [await inbox_of(world, name) for name in NAMES] == [1, 1, 0]


async def test_router_answers_for_itself(world: CellWorld) -> None:
    assert (await world.client.get(world.origin + "/healthz")).status_code == 200
    assert (await world.client.get(world.origin + "/readyz")).status_code == 200
    assert_refused(await world.client.get(world.origin + "/metrics"), 401, "UNAUTHORIZED")
    await world.client.get("/payments/context")
    told = await world.client.get(world.origin + "/metrics", headers=bearer("m" * 32))
    assert 'payagg_route_requests_total{by="home",cell="PAY",status="401"}' in told.text
    world.router.draining.set()
    assert_refused(await world.client.get(world.origin + "/readyz"), 503, "SERVICE_UNAVAILABLE")
    world.router.draining.clear()


@pytest.mark.parametrize(
    "head",
    [
        b"GET %s HTTP/1.0\r\n",
        b"GET %s HTTP/1.1\r\n",
        b"GET %s HTTP/1.1\r\nHost: x\r\nHost: y\r\n",
        b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: host\r\n",
        b"GET %s HTTP/1.1\r\nHost: x\r\nX-Note: space behind \t \r\n",
    ],
    ids=["no host", "no host in 1.1", "two", "host of one hop", "space"],
)
async def test_no_head_makes_the_router_count_a_cell_as_away(world: CellWorld, head: bytes) -> None:
    def counted(counter: Any) -> float:
        samples = [one for family in counter.collect() for one in family.samples if one.name.endswith("_total")]
        if counter is REQUESTS:
            samples = [one for one in samples if one.labels["status"].startswith(("5", "0"))]
        return float(sum(one.value for one in samples))

    before = counted(UNREACHABLE), counted(REQUESTS)
    for path in (b"/api/v1/payments/context", b"/api/v1/public/payments/PAY-20250131-7K2M9X", b"/console"):
        told = await raw(world.origin, head % path + b"Connection: close\r\n\r\n")
        assert told[9:10] in (b"2", b"3", b"4"), told
    # What PayaggCellAway and PayaggRouterErrors, both critical, look at.
    assert (counted(UNREACHABLE), counted(REQUESTS)) == before
