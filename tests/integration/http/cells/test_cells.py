"""What a cell answers that one installation does not."""

import base64
from dataclasses import replace

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.api_key import hash_secret
from payagg.extensions.cells.among_cells import among_cells
from payagg.extensions.cells.domain import KEY_DIGITS
from payagg.extensions.cells.gateway_replication import replication_over
from payagg.extensions.cells.settings import CellSettings
from tests.support.assembly import KEYS, SETTINGS, services_over
from tests.support.http_world import Api, admin_token, an_api, assert_refused, bearer

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
        for name in ("requests_handed_on", "events_handed_on"):
            assert f"# TYPE payagg_{name}_total counter" in told.text
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
        assert (state["name"], state["home"], state["fits"]) == ("PBX", "PAY", True)
        # Which keys seal is told by a digest; a key itself never is.
        assert list(state["keys"]) == ["k1"]
        assert base64.b64encode(KEYS[0][1]).decode() not in str(state)


async def test_one_installation_has_nothing_between_cells(api: Api) -> None:
    for path in ("/internal/cell", "/internal/cell/gateways", "/internal/cell/keys/" + "0" * 64):
        assert_refused(await api.client.get(api.origin + path, headers=PROVEN), 404, "NOT_FOUND")
    assert "payagg_cell_info" not in (await api.client.get(api.origin + "/metrics")).text
