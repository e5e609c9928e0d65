"""What a cell answers that one installation does not, and the home cell before two others, each with its own database:
what it does not have it sends on to the cell that has it."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from payagg_testing.builders import SANDBOX
from structlog.testing import capture_logs

from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.providers import ProviderEvent
from payagg.domain.api_key import hash_secret
from payagg.extensions.cells.among_cells import EVENT, among_cells
from payagg.extensions.cells.domain import KEY_DIGITS
from payagg.extensions.cells.gateway_replication import replication_over
from payagg.extensions.cells.settings import CellSettings
from tests.support.assembly import KEYS, SETTINGS, services_over
from tests.support.cell_world import NAMES, CellWorld, event_about, three_cells
from tests.support.http_world import Api, Shop, admin_token, an_api, assert_refused, bearer, raw

ORIGINS = (("PAY", "http://127.0.0.1:1"), ("PBX", "http://127.0.0.1:2"))
HOME = replace(SETTINGS, own=(CellSettings(ORIGINS, "s" * 40),))
OTHER = replace(HOME, reference_prefix="PBX")
PROVEN = bearer("s" * 40)
GATEWAY = {"slug": "acme", "name": "Acme"}


@pytest.mark.rule("MISDIRECTED_REQUEST")
async def test_only_the_home_cell_changes_gateways(store: PostgresStore) -> None:
    async with an_api(services_over(store, OTHER)) as api:
        as_admin = bearer(admin_token())
        refused = await api.client.post("/admin/gateways", json=GATEWAY, headers=as_admin)
        assert_refused(refused, 421, "MISDIRECTED_REQUEST")
        assert refused.headers["x-payagg-cell"] == "PAY"
        assert "home cell, PAY" in refused.json()["error"]["message"]
        assert_refused(await api.client.post("/admin/gateways", json=GATEWAY), 401, "UNAUTHORIZED")
        assert (await api.client.get("/admin/gateways", headers=as_admin)).json()["data"] == []
    async with an_api(services_over(store, HOME)) as api:
        assert (await api.client.post("/admin/gateways", json=GATEWAY, headers=as_admin)).status_code == 201


async def test_what_is_between_cells_needs_their_secret_and_metrics_tell_which_it_is(store: PostgresStore) -> None:
    async with an_api(services_over(store, replace(OTHER, dev=True))) as api:
        among = among_cells(api.services)
        assert among is not None
        version = await replication_over(api.services, among.others).version()
        told = await api.client.get(api.origin + "/metrics")
        assert f'payagg_cell_info{{cell="PBX",gateways="{version}"}} 1.0' in told.text
        assert "# TYPE payagg_requests_handed_on_total counter" in told.text
        shop = await api.open_shop()
        key, place = hash_secret(shop.sandbox).hex(), api.origin + "/internal/cell"
        paths = ("", "/gateways", "/names", f"/keys/{key}", f"/businesses/{shop.business.id}")
        for path in paths:
            assert_refused(await api.client.get(place + path), 401, "UNAUTHORIZED")
            wrong = bearer("s" * 39 + "t")
            assert_refused(await api.client.get(place + path, headers=wrong), 401, "UNAUTHORIZED")
            assert (await api.client.get(place + path, headers=PROVEN)).status_code == 200
        for path in ("/keys/" + "0" * 64, "/keys/x", "/businesses/biz_x"):
            assert_refused(await api.client.get(place + path, headers=PROVEN), 404, "NOT_FOUND")
        # Who has the secret, as the front has, makes no event. Another release may have another form of one.
        reference = (await api.initiate(shop))["reference"]
        event = ProviderEvent("inb_1", "provider_a", SANDBOX, b"d", event_about(reference)[0], datetime.now(UTC))
        sealed = api.services.vault.seal(b"{}", EVENT)
        for body in (msgspec.json.encode(event), api.services.vault.seal(msgspec.json.encode(event), "x"), sealed, b""):
            refused = await api.client.post(place + "/events", content=body, headers=PROVEN)
            assert_refused(refused, 400, "VALIDATION_ERROR")
        names = await api.client.get(place + "/names", headers=PROVEN)
        assert names.json()["businesses"] == [shop.business.id]
        assert key[:KEY_DIGITS] in names.json()["keys"]
        assert key not in names.text
        same = {**PROVEN, "If-None-Match": names.headers["etag"]}
        unchanged = await api.client.get(place + "/names", headers=same)
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        await api.open_shop()
        assert (await api.client.get(place + "/names", headers=same)).status_code == 200
        state = (await api.client.get(place, headers=PROVEN)).json()
        assert (state["name"], state["cells"], state["fits"]) == ("PBX", ["PAY", "PBX"], True)
        # Which keys seal is told by a digest; a key itself never is.
        assert list(state["keys"]) == ["k1"]
        assert base64.b64encode(KEYS[0][1]).decode() not in str(state)


async def test_one_installation_has_nothing_between_cells(api: Api) -> None:
    for path in ("/internal/cell", "/internal/cell/gateways", "/internal/cell/keys/" + "0" * 64):
        assert_refused(await api.client.get(api.origin + path, headers=PROVEN), 404, "NOT_FOUND")
    assert "payagg_cell_info" not in (await api.client.get(api.origin + "/metrics")).text


_INBOX = Statement("SELECT id FROM inbox")
_KEYS_LEFT = Statement("""
WITH gone AS (DELETE FROM api_keys WHERE business_id = :business_id RETURNING secret_hash)
INSERT INTO moved_keys (secret_hash, business_id, cell, at) SELECT secret_hash, :business_id, 'PCX', now() FROM gone
""")
CARD = "4242424242424242"


@pytest.fixture(scope="module")
async def world(new_database: Callable[[], AbstractContextManager[str]]) -> AsyncIterator[CellWorld]:
    """One for all tests here: each opens shops of its own. Who kills a cell, or looks at limits, has a world alone."""
    with new_database() as first, new_database() as second, new_database() as third:
        async with three_cells([first, second, third]) as world:
            yield world


def home(world: CellWorld) -> Api:
    return world.cells["PAY"].api


async def initiated(world: CellWorld, shop: Shop) -> str:
    return str((await home(world).initiate(shop))["reference"])


async def journey(world: CellWorld, shop: Shop) -> str:
    """Initiate, pay at the hosted page's endpoints, and read as the merchant; the reference."""
    reference = await initiated(world, shop)
    public = f"/public/payments/{reference}"
    await home(world).get(public)
    await home(world).send("POST", f"{public}/process", gatewaySlug="sandbox", cardNumber=CARD)
    await home(world).get(f"{public}/verify")
    assert (await home(world).get(f"/payments/{reference}", shop.as_sandbox))["status"] == "SUCCESS"
    return reference


async def test_each_request_goes_to_the_cell_of_its_business(world: CellWorld) -> None:
    shops = await world.shops()
    owner = shops["PAY"].as_owner
    for name, shop in shops.items():
        reference = await journey(world, shop)
        assert reference.startswith(name)
        for cell in world.cells.values():
            assert (await cell.api.client.get(f"/public/payments/{reference}")).status_code == 200
        assert (await home(world).get(shop.path, owner))["id"] == shop.business.id
    # A key decides what it may know of any reference.
    client = home(world).client
    theirs = await client.get(f"/payments/{reference}", headers=shops["PAY"].as_sandbox)
    assert_refused(theirs, 404, "PAYMENT_NOT_FOUND")
    listed = (await home(world).get("/merchant/businesses", owner))["businesses"]
    assert {shop.business.id for shop in shops.values()} <= {one["id"] for one in listed}
    assert_refused(await client.get("/merchant/businesses"), 401, "UNAUTHORIZED")

    shop = shops["PBX"]
    keys = f"{shop.path}/api-keys"
    [key] = (await home(world).get(keys, shop.as_owner))["sandbox"]
    await home(world).send("DELETE", f"{keys}/{key['id']}", shop.as_owner)
    assert_refused(await client.get("/payments/context", headers=shop.as_sandbox), 401, "INVALID_API_KEY")
    made = await home(world).send("POST", keys, shop.as_owner, environment="SANDBOX", name="New")
    await home(world).get("/payments/context", bearer(made["secretKey"]))


async def test_an_administrator_reaches_any_cell_by_its_name(world: CellWorld) -> None:
    as_admin = bearer(admin_token())
    in_pcx = {**as_admin, "X-Payagg-Cell": "PCX"}
    made = await home(world).send("POST", "/admin/businesses", in_pcx, name="A shop", owner="owner-9")
    for api in (world.cells["PCX"].api, home(world)):
        await api.get(f"/admin/businesses/{made['id']}", as_admin)
    wrong = await home(world).client.get("/admin/businesses", headers={**as_admin, "X-Payagg-Cell": "XXX"})
    assert_refused(wrong, 400, "VALIDATION_ERROR", "X-Payagg-Cell")


async def test_an_answer_of_another_cell_is_told_as_one_of_this(world: CellWorld) -> None:
    shop = (await world.shops())["PBX"]
    hops = {"X-Request-Id": "request-of-mine", "Connection": "keep-alive", "X-Payagg-Cell-Secret": "x" * 32}
    answer = await home(world).client.get("/payments/context", headers={**shop.as_sandbox, **hops})
    there = await world.cells["PBX"].api.client.get("/payments/context", headers={**shop.as_sandbox, **hops})
    assert answer.json() == there.json()
    assert [sorted(one.headers) for one in (answer, there)] == [sorted(there.headers)] * 2
    for name in answer.headers:
        assert len(answer.headers.get_list(name)) == 1, name
    assert answer.headers["x-request-id"] == "request-of-mine"
    head = await home(world).client.head("/payments/context", headers=shop.as_sandbox)
    assert (head.status_code, head.content) == (200, b"")
    long = b"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 70000\r\n"
    told = await raw(
        home(world).origin, long + f"Authorization: Bearer {shop.sandbox}\r\n\r\n".encode() + b" " * 70_000
    )
    assert told.startswith(b"HTTP/1.1 413 "), told


async def test_a_cell_names_where_a_key_went_to_the_cell_that_sent_the_request_on(world: CellWorld) -> None:
    shop, cell = (await world.shops())["PBX"], world.cells["PBX"].api
    proof = {"X-Payagg-Cell-Secret": cell.services.settings.of(CellSettings).cell_secret or ""}
    store: Any = cell.services.store
    await store.pool.run(_KEYS_LEFT, business_id=shop.business.id)
    sent_on = await cell.client.get("/payments/context", headers={**shop.as_sandbox, **proof})
    assert_refused(sent_on, 421, "MISDIRECTED_REQUEST")
    assert sent_on.headers["x-payagg-cell"] == "PCX"
    # Of a client it follows the record itself: there the key never arrived.
    assert_refused(await cell.client.get("/payments/context", headers=shop.as_sandbox), 401, "INVALID_API_KEY")


async def inbox_of(world: CellWorld, name: str) -> int:
    store: Any = world.cells[name].api.services.store
    return len(await store.pool.run(_INBOX))


async def test_a_dead_cell_stops_its_own_businesses_alone(database_urls: list[str]) -> None:
    async with three_cells(database_urls, unknown_reference_limit=5) as world:
        shops = await world.shops()
        await home(world).open_gateways()
        await world.replicate_gateways()
        references = {name: await initiated(world, shop) for name, shop in shops.items()}
        await an_event_is_led_home(world, references["PBX"])
        client = home(world).client
        # Only the cell that made a reference knows whether it is guessed: hundreds of payers may share an address.
        made = [f"/public/payments/{references['PBX']}"] * 8
        guessed = [f"/public/payments/PBX-20250131-00000{number}" for number in range(8)]
        codes = [(await client.get(path)).status_code for path in made + guessed]
        assert codes == [200] * 8 + [404] * 5 + [429] * 3
        assert_refused(await client.get("/payments/context", headers=bearer("ssk_x")), 401, "INVALID_API_KEY")
        guesses = [bearer(f"ssk_sand_{number:048x}") for number in range(8)]
        codes = [(await client.get("/payments/context", headers=key)).status_code for key in guesses]
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
                with capture_logs() as lines:
                    answer = await home(world).client.get(path, headers=headers)
                told = [line["reason"] for line in lines if line["event"] == "service unavailable"]
                assert told == (["the cell PBX cannot be reached: ConnectError"] if name == "PBX" else [])
                if name == "PBX":
                    assert_refused(answer, 503, "SERVICE_UNAVAILABLE")
                    assert "PBX" not in answer.json()["error"]["message"]
                    assert int(answer.headers["retry-after"]) >= 1
                else:
                    assert answer.status_code == 200
        listed = await home(world).client.get("/merchant/businesses", headers=shops["PAY"].as_owner)
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
    body, signature = event_about(reference, "longer than any other body " * 3_000)
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
    assert (await home(world).client.post(address, content=body, headers=signature)).status_code == 200
    assert [await inbox_of(world, name) for name in NAMES] == [1, 1, 0]
