"""The application over HTTP with a clock that stands still and a merchant at hand, for the tests of gateways."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from payagg_testing.builders import a_business
from payagg_testing.clocks import ManualClock

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.business import Role
from payagg.entrypoints.bootstrap import Services
from tests.support.assembly import services_over
from tests.support.http_world import admin_token, merchant_token, served

MERCHANT = "/merchant/businesses/biz_1/gateways"
ADMIN = "/admin/gateways"


@dataclass(frozen=True)
class GatewayApi:
    client: httpx.AsyncClient
    services: Services
    clock: ManualClock

    async def admin(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        return await self.call(method, ADMIN + path, admin_token(), **more)

    async def merchant(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        return await self.call(method, MERCHANT + path, merchant_token("ada"), **more)

    async def call(self, method: str, path: str, credential: str | None, **more: Any) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        return await self.client.request(method, path, headers=headers, **more)

    async def an_active(self, slug: str = "acme", **fields: Any) -> str:
        """The id of a new gateway that was enabled."""
        created = await self.admin("POST", json={"slug": slug, "name": "Acme Pay", **fields})
        gateway_id: str = created.json()["data"]["id"]
        assert (await self.admin("POST", f"/{gateway_id}/enable")).status_code == 200
        return gateway_id

    async def upload(self, gateway_id: str, content: bytes, name: str = "logo.png") -> httpx.Response:
        return await self.admin("POST", f"/{gateway_id}/logo", files={"file": (name, content, "image/png")})

    async def announced(self, method: str, path: str, length: int, media_type: str) -> tuple[int, str]:
        """Status and body of the answer to a request whose body is promised and never sent."""
        url = self.client.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = f"{method} {url.path}{ADMIN.lstrip('/')}{path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n"
        head += f"Authorization: Bearer {admin_token()}\r\nContent-Type: {media_type}\r\n\r\n"
        writer.write(head.encode())
        answer = (await reader.read()).decode()
        writer.close()
        return int(answer.split(" ", 2)[1]), answer.partition("\r\n\r\n")[2]


@asynccontextmanager
async def a_gateway_api(store: PostgresStore) -> AsyncIterator[GatewayApi]:
    """With `biz_1`, whose owner is `ada`, and the seeded gateways."""
    clock = ManualClock()
    services = services_over(store, clock=clock)
    await services.gateways.seed("builtin", ("provider_a", "provider_b"))
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.members.add("biz_1", "ada", Role.OWNER)
        await tx.members.add("biz_1", "mimi", Role.MEMBER)
    async with (
        served(services) as origin,
        httpx.AsyncClient(base_url=f"{origin}/api/v1", timeout=30, trust_env=False) as client,
    ):
        yield GatewayApi(client, services, clock)
