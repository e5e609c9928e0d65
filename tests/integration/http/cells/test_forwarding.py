"""The home cell before two others, each with its own database: what it does not have it sends on to the cell that has
it."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.application.schemas.gateways import UpdateCredentials
from tests.support.cell_world import BY, NAMES, CellWorld, three_cells
from tests.support.http_world import Shop, admin_token, assert_refused, bearer, raw

_INBOX = Statement("SELECT id FROM inbox")
CARD = "4242424242424242"
WEBHOOK_SECRET = "sk_test_" + "a" * 40


@pytest.fixture(scope="module")
async def world(new_database: Callable[[], AbstractContextManager[str]]) -> AsyncIterator[CellWorld]:
    """One for all tests here: each opens shops of its own. Who kills a cell, or looks at limits, has a world alone."""
    with new_database() as first, new_database() as second, new_database() as third:
        async with three_cells([first, second, third]) as world:
            yield world


def home(world: CellWorld) -> Any:
    """A client of the home cell."""
    return world.cells["PAY"].api.client


async def initiated(world: CellWorld, shop: Shop) -> str:
    answer = await home(world).post("/payments/initiate", json={"amount": 150000}, headers=shop.as_sandbox)
    assert answer.status_code == 201, answer.text
    reference: str = answer.json()["data"]["reference"]
    return reference


async def journey(world: CellWorld, shop: Shop) -> str:
    """Initiate, pay at the hosted page's endpoints, and read as the merchant; the reference."""
    reference = await initiated(world, shop)
    (await home(world).get(f"/public/payments/{reference}")).raise_for_status()
    paid = await home(world).post(
        f"/public/payments/{reference}/process", json={"gatewaySlug": "sandbox", "cardNumber": CARD}
    )
    paid.raise_for_status()
    (await home(world).get(f"/public/payments/{reference}/verify")).raise_for_status()
    read = await home(world).get(f"/payments/{reference}", headers=shop.as_sandbox)
    assert read.json()["data"]["status"] == "SUCCESS", read.text
    return reference


async def test_each_request_goes_to_the_cell_of_its_business(world: CellWorld) -> None:
    shops = await world.shops()
    owner = shops["PAY"].as_owner
    for name, shop in shops.items():
        reference = await journey(world, shop)
        assert reference.startswith(name)
        for other in NAMES[1:]:  # which ask nobody
            found = await world.cells[other].api.client.get(f"/public/payments/{reference}")
            assert found.status_code == (200 if other == name else 404)
        read = await home(world).get(shop.path, headers=owner)
        assert read.json()["data"]["id"] == shop.business.id
    # A key decides what it may know of any reference.
    theirs = await home(world).get(f"/payments/{reference}", headers=shops["PAY"].as_sandbox)
    assert_refused(theirs, 404, "PAYMENT_NOT_FOUND")
    listed = (await home(world).get("/merchant/businesses", headers=owner)).json()["data"]["businesses"]
    assert {shop.business.id for shop in shops.values()} <= {one["id"] for one in listed}
    assert_refused(await home(world).get("/merchant/businesses"), 401, "UNAUTHORIZED")

    shop = shops["PBX"]
    [key] = (await home(world).get(f"{shop.path}/api-keys", headers=shop.as_owner)).json()["data"]["sandbox"]
    (await home(world).delete(f"{shop.path}/api-keys/{key['id']}", headers=shop.as_owner)).raise_for_status()
    assert_refused(await home(world).get("/payments/context", headers=shop.as_sandbox), 401, "INVALID_API_KEY")
    body = {"environment": "SANDBOX", "name": "New"}
    made = await home(world).post(f"{shop.path}/api-keys", json=body, headers=shop.as_owner)
    fresh = bearer(made.json()["data"]["secretKey"])
    assert (await home(world).get("/payments/context", headers=fresh)).status_code == 200


async def test_an_administrator_reaches_any_cell_by_its_name(world: CellWorld) -> None:
    as_admin = bearer(admin_token())
    body, in_pcx = {"name": "A shop", "owner": "owner-9"}, {**as_admin, "X-Payagg-Cell": "PCX"}
    in_cell = await home(world).post("/admin/businesses", json=body, headers=in_pcx)
    assert in_cell.status_code == 201, in_cell.text
    path = f"/admin/businesses/{in_cell.json()['data']['id']}"
    for client in (world.cells["PCX"].api.client, home(world)):
        assert (await client.get(path, headers=as_admin)).is_success
    wrong = await home(world).get("/admin/businesses", headers={**as_admin, "X-Payagg-Cell": "XXX"})
    assert_refused(wrong, 400, "VALIDATION_ERROR", "X-Payagg-Cell")


async def test_an_answer_of_another_cell_is_told_as_one_of_this(world: CellWorld) -> None:
    shop = (await world.shops())["PBX"]
    hops = {"X-Request-Id": "request-of-mine", "Connection": "keep-alive", "X-Payagg-Cell-Secret": "x" * 32}
    answer = await home(world).get("/payments/context", headers={**shop.as_sandbox, **hops})
    there = await world.cells["PBX"].api.client.get("/payments/context", headers={**shop.as_sandbox, **hops})
    assert answer.json() == there.json()
    assert [sorted(one.headers) for one in (answer, there)] == [sorted(there.headers)] * 2
    for name in answer.headers:
        assert len(answer.headers.get_list(name)) == 1, name
    assert answer.headers["x-request-id"] == "request-of-mine"
    head = await home(world).head("/payments/context", headers=shop.as_sandbox)
    assert (head.status_code, head.content) == (200, b"")
    long = b"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 70000\r\n"
    told = await raw(
        world.cells["PAY"].api.origin, long + f"Authorization: Bearer {shop.sandbox}\r\n\r\n".encode() + b" " * 70_000
    )
    assert told.startswith(b"HTTP/1.1 413 "), told


async def ready_for_events(world: CellWorld) -> None:
    at_home = world.cells["PAY"].api.services
    [gateway] = [one.id for one in await at_home.gateways.list_gateways() if one.slug == "provider_a"]
    await at_home.gateways.set_credentials(
        gateway, UpdateCredentials(credentials={"sandboxSecretKey": WEBHOOK_SECRET}), by=BY
    )
    await at_home.gateways.enable(gateway, by=BY)
    await world.replicate_gateways()


def event_about(reference: str) -> tuple[bytes, dict[str, str]]:
    data = {"id": 5, "domain": "test", "status": "success", "reference": reference, "amount": 150000, "currency": "NGN"}
    body = json.dumps({"event": "charge.success", "data": data}).encode()
    return body, {"x-provider_a-signature": hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha512).hexdigest()}


async def inbox_of(world: CellWorld, name: str) -> int:
    store: Any = world.cells[name].api.services.store
    return len(await store.pool.run(_INBOX))


async def test_a_dead_cell_stops_its_own_businesses_alone(database_urls: list[str]) -> None:
    async with three_cells(database_urls, unknown_reference_limit=5) as world:
        shops = await world.shops()
        await ready_for_events(world)
        references = {name: await initiated(world, shop) for name, shop in shops.items()}
        await an_event_is_led_home(world, references["PBX"])
        assert_refused(await home(world).get("/payments/context", headers=bearer("ssk_x")), 401, "INVALID_API_KEY")
        guesses = [bearer(f"ssk_sand_{number:048x}") for number in range(8)]
        codes = [(await home(world).get("/payments/context", headers=key)).status_code for key in guesses]
        assert codes == [401] * 5 + [429] * 3

    async with three_cells(database_urls) as world:
        shops = await world.shops()
        references = {name: await initiated(world, shop) for name, shop in shops.items()}
        await world.cells["PBX"].kill()
        for name, shop in shops.items():
            for path, headers in (
                (f"/payments/{references[name]}", shop.as_sandbox),
                (f"/public/payments/{references[name]}", {}),
                (shop.path, shop.as_owner),
            ):
                answer = await home(world).get(path, headers=headers)
                if name == "PBX":
                    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
                    assert int(answer.headers["retry-after"]) >= 1
                else:
                    assert answer.status_code == 200
        listed = await home(world).get("/merchant/businesses", headers=shops["PAY"].as_owner)
        assert listed.headers["x-payagg-cells-away"] == "PBX"
        own = {shops[name].business.id for name in ("PAY", "PCX")}
        assert own <= {one["id"] for one in listed.json()["data"]["businesses"]}
        body, signature = event_about(references["PBX"])
        elsewhere = world.cells["PCX"].api.client
        late = await elsewhere.post("/webhooks/provider_a/sandbox", content=body, headers=signature)
        assert_refused(late, 503, "SERVICE_UNAVAILABLE")
        await journey(world, shops["PAY"])


async def an_event_is_led_home(world: CellWorld, reference: str) -> None:
    """Whichever cell it reaches, it arrives once in the one that knows its reference, PBX."""
    body, signature = event_about(reference)
    address = "/webhooks/provider_a/sandbox"
    for name in ("PCX", "PAY", "PBX"):
        told = await world.cells[name].api.client.post(address, content=body, headers=signature)
        assert told.status_code == 200, told.text
    assert [await inbox_of(world, name) for name in NAMES] == [0, 1, 0]
    forged = await world.cells["PCX"].api.client.post(
        address, content=body, headers={"x-provider_a-signature": "0" * 128}
    )
    assert_refused(forged, 400, "INVALID_WEBHOOK_SIGNATURE")
    # One about nobody's reference is kept where it came.
    body, signature = event_about("OLD-20250131-7K2M9X")
    assert (await home(world).post(address, content=body, headers=signature)).status_code == 200
    assert [await inbox_of(world, name) for name in NAMES] == [1, 1, 0]
