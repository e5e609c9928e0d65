"""The router before three cells, each with its own database: whose request it is decides where it goes."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.entrypoints.route.messages import KEPT_BYTES, WAITED_FOR_MAX
from payagg.entrypoints.route.metrics import REQUESTS, UNREACHABLE
from payagg.entrypoints.route.upstream import CONNECTIONS_MAX
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


async def ready_for_events(world: CellWorld) -> None:
    home = world.cells["PAY"].api.services
    [gateway] = [one.id for one in await home.gateways.list_gateways() if one.slug == "provider_a"]
    await home.gateways.set_credentials(
        gateway, UpdateCredentials(credentials={"sandboxSecretKey": WEBHOOK_SECRET}), by=BY
    )
    await home.gateways.enable(gateway, by=BY)
    for name in NAMES[1:]:
        copies = world.cells[name].api.services.gateway_replication
        assert copies is not None
        await copies.pull()


def event_about(reference: str) -> tuple[bytes, dict[str, str]]:
    data = {"id": 5, "domain": "test", "status": "success", "reference": reference, "amount": 150000, "currency": "NGN"}
    body = json.dumps({"event": "charge.success", "data": data}).encode()
    return body, {"x-provider_a-signature": hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha512).hexdigest()}


async def inbox_of(world: CellWorld, name: str) -> int:
    store: Any = world.cells[name].api.services.store
    return len(await store.pool.run(_INBOX))


async def test_each_request_goes_to_the_cell_of_its_business(world: CellWorld) -> None:
    shops = await world.shops()
    owner = shops["PAY"].as_owner
    for name, shop in shops.items():
        reference = await journey(world, shop)
        assert reference.startswith(name)
        for other in NAMES[1:]:  # the home cell sends on
            found = await world.cells[other].api.client.get(f"/public/payments/{reference}")
            assert found.status_code == (200 if other == name else 404)
        read = await world.client.get(shop.path, headers=owner)
        assert read.json()["data"]["id"] == shop.business.id
    # A key decides what it may know of any reference.
    theirs = await world.client.get(f"/payments/{reference}", headers=shops["PAY"].as_sandbox)
    assert_refused(theirs, 404, "PAYMENT_NOT_FOUND")
    listed = (await world.client.get("/merchant/businesses", headers=owner)).json()["data"]["businesses"]
    assert {one["id"] for one in listed} == {shop.business.id for shop in shops.values()}
    assert_refused(await world.client.get("/merchant/businesses"), 401, "UNAUTHORIZED")

    shop = shops["PBX"]
    [key] = (await world.client.get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]["sandbox"]
    (await world.client.delete(f"{shop.path}/api-keys/{key['id']}", headers=shop.as_owner)).raise_for_status()
    for _ in range(3):
        assert_refused(await world.client.get("/payments/context", headers=shop.as_sandbox), 401, "INVALID_API_KEY")
    body = {"environment": "SANDBOX", "name": "New"}
    made = await world.client.post(f"{shop.path}/api-keys", json=body, headers=shop.as_owner)
    fresh = bearer(made.json()["data"]["secretKey"])
    assert (await world.client.get("/payments/context", headers=fresh)).status_code == 200


async def test_administrators_reach_gateways_at_home_and_any_cell_by_its_name(world: CellWorld) -> None:
    as_admin = bearer(admin_token())
    made = await world.client.post("/admin/gateways", json={"slug": "acme", "name": "Acme"}, headers=as_admin)
    assert made.status_code == 201
    body, in_pcx = {"name": "A shop", "owner": "owner-9"}, {**as_admin, "X-Payagg-Cell": "PCX"}
    in_cell = await world.client.post("/admin/businesses", json=body, headers=in_pcx)
    assert in_cell.status_code == 201, in_cell.text
    path = f"/admin/businesses/{in_cell.json()['data']['id']}"
    for client in (world.cells["PCX"].api.client, world.client):
        assert (await client.get(path, headers=as_admin)).is_success
    wrong = await world.client.get("/admin/businesses", headers={**as_admin, "X-Payagg-Cell": "XXX"})
    assert_refused(wrong, 400, "VALIDATION_ERROR", "X-Payagg-Cell")

    credentials = {f"name{number}": "v" * 4000 for number in range(40)}
    whole = json.dumps({"credentials": credentials}).encode()
    assert len(whole) > 2 * KEPT_BYTES

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), 10_000):
            yield whole[at : at + 10_000]

    as_json, secrets = {**as_admin, "Content-Type": "application/json"}, "/admin/gateways/gw_provider_a/credentials"
    for content in (whole, parts()):
        stored = await world.client.patch(secrets, content=content, headers=as_json)
        assert stored.status_code == 200, stored.text


async def test_the_router_hides_the_cells_and_answers_for_itself(world: CellWorld) -> None:
    secret = bearer(str(world.settings.cell_secret))
    for path in ("/internal/cell", "/internal/cell/gateways", "/internal/cell/keys/" + "0" * 64):
        assert_refused(await world.client.get(world.origin + path, headers=secret), 404, "NOT_FOUND")
    shop = (await world.shops())["PBX"]
    hops = {"X-Request-Id": "request-of-mine", "Connection": "keep-alive, x-odd", "X-Odd": "1"}
    answer = await world.client.get("/payments/context", headers={**shop.as_sandbox, **hops})
    assert answer.headers["x-request-id"] == "request-of-mine"
    assert len(answer.headers.get_list("date")) == 1
    assert "x-payagg-cell" not in answer.headers
    head = await world.client.head("/payments/context", headers=shop.as_sandbox)
    assert (head.status_code, head.content) == (200, b"")
    assert_refused(await world.client.get("/nothing"), 404, "NOT_FOUND")
    for path in ("/healthz", "/readyz"):
        assert (await world.client.get(world.origin + path)).status_code == 200
    assert_refused(await world.client.get(world.origin + "/metrics"), 401, "UNAUTHORIZED")
    await world.client.get("/payments/context")
    told = await world.client.get(world.origin + "/metrics", headers=bearer("m" * 32))
    assert 'payagg_route_requests_total{by="home",cell="PAY",status="401"}' in told.text
    world.router.draining.set()
    assert_refused(await world.client.get(world.origin + "/readyz"), 503, "SERVICE_UNAVAILABLE")
    world.router.draining.clear()


HEADS = (
    b"GET %s HTTP/1.0\r\n",
    b"GET %s HTTP/1.1\r\n",
    b"GET %s HTTP/1.1\r\nHost: x\r\nHost: y\r\n",
    b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: host\r\n",
    b"GET %s HTTP/1.1\r\nHost: x\r\nX-Note: space behind \t \r\n",
)


async def test_no_head_makes_the_router_count_a_cell_as_away(world: CellWorld) -> None:
    def counted(counter: Any) -> float:
        samples = [one for family in counter.collect() for one in family.samples if one.name.endswith("_total")]
        if counter is REQUESTS:
            samples = [one for one in samples if one.labels["status"].startswith(("5", "0"))]
        return float(sum(one.value for one in samples))

    before = counted(UNREACHABLE), counted(REQUESTS)
    for head in HEADS:
        for path in (b"/api/v1/payments/context", b"/api/v1/public/payments/PAY-20250131-7K2M9X", b"/console"):
            told = await raw(world.origin, head % path + b"Connection: close\r\n\r\n")
            assert told[9:10] in (b"2", b"3", b"4"), told
    # What PayaggCellAway and PayaggRouterErrors, both critical, look at.
    assert (counted(UNREACHABLE), counted(REQUESTS)) == before


OURS = "https://shop.example"


async def test_bodies_that_stop_take_a_share_of_a_cell_and_no_more(world: CellWorld) -> None:
    shop = (await world.shops())["PAY"]
    host, port = world.origin.removeprefix("http://").split(":")
    first = f"POST /api/v1/public/payments/PAY-20250131-7K2M9X/process HTTP/1.1\r\nHost: {host}\r\n"

    async def stops_after(client: int) -> int:
        """The status; the body stops after 66 KB of 200."""
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"{first}X-Forwarded-For: 203.0.113.{client}\r\nContent-Length: 200000\r\n\r\n"
        writer.write(head.encode() + b"x" * 66_000)
        status = int((await reader.readline()).split()[1])
        writer.close()
        return status

    stopped = [asyncio.create_task(stops_after(number % 200)) for number in range(CONNECTIONS_MAX + 10)]
    answers = asyncio.as_completed(stopped)
    assert {await next(answers) for _ in range(CONNECTIONS_MAX + 10 - WAITED_FOR_MAX)} == {503}
    assert sum(not task.done() for task in stopped) == WAITED_FOR_MAX
    for _ in range(3):
        await initiated(world, shop)
    for task in stopped:
        task.cancel()
    await asyncio.wait(stopped)


async def test_a_list_that_every_cell_is_asked_for_takes_no_long_body(world: CellWorld) -> None:
    head = b"GET /api/v1/merchant/businesses HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n"
    told = await raw(world.origin, head + b"x" * 66_000)
    assert told.startswith(b"HTTP/1.1 413 "), told
    assert b"PAYLOAD_TOO_LARGE" in told


async def test_a_dead_cell_stops_its_own_businesses_alone(database_urls: list[str]) -> None:
    async with three_cells(database_urls, cors_origins=(OURS,), unknown_reference_limit=5) as world:
        shops = await world.shops()
        await ready_for_events(world)
        references = {name: await initiated(world, shop) for name, shop in shops.items()}
        for shop in shops.values():  # what the router has not met is a guess
            assert (await world.client.get(shop.path, headers=shop.as_owner)).status_code == 200
        await an_event_is_led_home(world, references["PBX"])
        assert_refused(await world.client.get("/payments/context", headers=bearer("ssk_x")), 401, "INVALID_API_KEY")
        guesses = [bearer(f"ssk_sand_{number:048x}") for number in range(8)]
        codes = [(await world.client.get("/payments/context", headers=key)).status_code for key in guesses]
        assert codes == [401] * 5 + [429] * 3

        await world.cells["PBX"].kill()
        for name, shop in shops.items():
            for path, headers in (
                (f"/payments/{references[name]}", shop.as_sandbox),
                (f"/public/payments/{references[name]}", {}),
                (shop.path, shop.as_owner),
            ):
                answer = await world.client.get(path, headers=headers)
                if name == "PBX":
                    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
                    assert int(answer.headers["retry-after"]) >= 1
                else:
                    assert answer.status_code == 200
        listed = await world.client.get("/merchant/businesses", headers=shops["PAY"].as_owner)
        assert listed.headers["x-payagg-cells-away"] == "PBX"
        assert len(listed.json()["data"]["businesses"]) == 2
        body, signature = event_about(references["PBX"])
        elsewhere = world.cells["PCX"].api.client
        late = await elsewhere.post("/webhooks/provider_a/sandbox", content=body, headers=signature)
        assert_refused(late, 503, "SERVICE_UNAVAILABLE")
        await journey(world, shops["PAY"])

        # Named origins alone read what the router says of itself.
        for wanted in (200, 503):
            for origin, is_told in ((OURS, True), ("https://evil.example", False)):
                headers = shops["PAY"].as_owner | {"Origin": origin}
                answer = await world.client.get("/merchant/businesses", headers=headers)
                assert answer.status_code == wanted
                assert (answer.headers.get_list("access-control-allow-origin") == [origin]) is is_told
            for name in ("PAY", "PCX"):
                await world.cells[name].kill()


async def an_event_is_led_home(world: CellWorld, reference: str) -> None:
    """Whichever cell it reaches, it arrives once in the one that knows its reference, PBX."""
    body, signature = event_about(reference)
    address = "/webhooks/provider_a/sandbox"
    for client in (*(world.cells[name].api.client for name in ("PCX", "PAY", "PBX")), world.client):
        told = await client.post(address, content=body, headers=signature)
        assert told.status_code == 200, told.text
    assert [await inbox_of(world, name) for name in NAMES] == [0, 1, 0]
    forged = await world.cells["PCX"].api.client.post(
        address, content=body, headers={"x-provider_a-signature": "0" * 128}
    )
    assert_refused(forged, 400, "INVALID_WEBHOOK_SIGNATURE")
    # One about nobody's reference is kept where it came.
    body, signature = event_about("OLD-20250131-7K2M9X")
    assert (await world.client.post(address, content=body, headers=signature)).status_code == 200
    assert [await inbox_of(world, name) for name in NAMES] == [1, 1, 0]
