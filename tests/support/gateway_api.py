"""The application over HTTP with a clock that stands still and a merchant at hand, for the tests of gateways."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from payagg_testing.builders import a_business
from payagg_testing.clocks import ManualClock

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from payagg.domain.business import Role
from payagg.entrypoints.bootstrap import Services
from tests.support.assembly import services_over
from tests.support.http_world import admin_token, an_api, bearer, merchant_token


@dataclass(frozen=True)
class GatewayApi:
    client: httpx.AsyncClient
    services: Services
    clock: ManualClock

    async def admin(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        headers = bearer(admin_token()) | more.pop("headers", {})
        return await self.client.request(method, f"/admin/gateways{path}", headers=headers, **more)

    async def merchant(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        path = f"/merchant/businesses/biz_1/gateways{path}"
        return await self.client.request(method, path, headers=bearer(merchant_token("ada")), **more)

    async def an_active(self, slug: str = "acme", **fields: Any) -> str:
        """The id of a new gateway that was enabled."""
        created = await self.admin("POST", json={"slug": slug, "name": "Acme Pay", **fields})
        gateway_id: str = created.json()["data"]["id"]
        assert (await self.admin("POST", f"/{gateway_id}/enable")).status_code == 200
        return gateway_id

    async def upload(self, gateway_id: str, content: bytes) -> httpx.Response:
        return await self.admin("POST", f"/{gateway_id}/logo", files={"file": ("logo.png", content, "image/png")})


@asynccontextmanager
async def a_gateway_api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    """With `biz_1`, whose owner is `ada`, and the seeded gateways."""
    clock = ManualClock()
    services = services_over(store, clock=clock)
    await seed_gateways(services.gateways, "builtin", ("provider_a", "provider_b"))
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.members.add("biz_1", "ada", Role.OWNER)
    async with an_api(services) as api:
        yield GatewayApi(api.client, services, clock)
