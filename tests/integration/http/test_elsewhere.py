"""What a caller is told of what another installation has: its name, and that nothing was done."""

from dataclasses import dataclass, replace

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.elsewhere import Nowhere
from payagg.domain.errors import misdirected_refusal
from tests.support.assembly import services_over
from tests.support.http_world import admin_token, an_api, assert_refused, bearer


@dataclass(frozen=True)
class SetElsewhere(Nowhere):
    def ensure_gateways_are_set_here(self) -> None:
        raise misdirected_refusal("PBX")


@pytest.mark.rule("MISDIRECTED_REQUEST")
async def test_a_refusal_names_the_installation_that_has_it(store: PostgresStore) -> None:
    as_admin, gateway = bearer(admin_token()), {"slug": "acme", "name": "Acme"}
    async with an_api(replace(services_over(store), elsewhere=SetElsewhere())) as api:
        refused = await api.client.post("/admin/gateways", json=gateway, headers=as_admin)
        assert_refused(refused, 421, "MISDIRECTED_REQUEST")
        assert refused.headers["x-payagg-cell"] == "PBX"
        assert (await api.client.get("/admin/gateways", headers=as_admin)).json()["data"] == []
