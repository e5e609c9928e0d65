"""Whole journeys of several businesses through the router, and what became of every request, by cell."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.cells.site import CellSite
from tests.support.http_world import admin_token, bearer, merchant_token

CARD = "4242424242424242"
PACE = 0.1  # seconds between two journeys of one business
PAUSE = 0.3  # after a refusal


@dataclass
class CellShop:
    cell: str
    business: str
    owner: str
    secret: str

    @property
    def as_server(self) -> dict[str, str]:
        return bearer(self.secret)


@dataclass
class CellLoad:
    """`refused` counts answers by cell and status (0: none came); `journeys` those that ended paid."""

    client: httpx.AsyncClient
    shops: list[CellShop]
    answers: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, int]] = field(default_factory=Counter)
    journeys: Counter[str] = field(default_factory=Counter)
    _is_over: bool = False

    async def run(self) -> None:
        """Until `finish`, and until every journey under way has ended."""
        await asyncio.gather(*(self._sell(shop) for shop in self.shops))

    def finish(self) -> None:
        self._is_over = True

    async def _sell(self, shop: CellShop) -> None:
        while not self._is_over:
            if await self._journey(shop):
                self.journeys[shop.cell] += 1
                await asyncio.sleep(PACE)
            else:
                await asyncio.sleep(PAUSE)

    async def _journey(self, shop: CellShop) -> bool:
        made = await self._told(shop, "POST", "/payments/initiate", json={"amount": 5000}, headers=shop.as_server)
        if made is None:
            return False
        reference = made["reference"]
        assert reference.startswith(shop.cell)
        public = f"/public/payments/{reference}"
        body = {"gatewaySlug": "sandbox", "cardNumber": CARD}
        for method, path, more in (
            ("GET", public, {}),
            ("POST", f"{public}/process", {"json": body}),
            ("GET", f"{public}/verify", {}),
            ("GET", f"/merchant/businesses/{shop.business}", {"headers": bearer(merchant_token(shop.owner))}),
        ):
            if await self._told(shop, method, path, **more) is None:
                return False
        read = await self._told(shop, "GET", f"/payments/{reference}", headers=shop.as_server)
        return read is not None and read["status"] == "SUCCESS"

    async def _told(self, shop: CellShop, method: str, path: str, **request: Any) -> dict[str, Any] | None:
        try:
            answer = await self.client.request(method, path, **request)
        except httpx.TransportError:
            self.refused[shop.cell, 0] += 1
            return None
        if answer.status_code not in (200, 201):
            self.refused[shop.cell, answer.status_code] += 1
            return None
        self.answers[shop.cell] += 1
        data: dict[str, Any] = answer.json()["data"]
        return data


async def opened(site: CellSite, client: httpx.AsyncClient, cell: str, number: int) -> CellShop:
    """A business of that cell with a sandbox key, made through the router."""
    as_admin = {**bearer(admin_token()), "X-Payagg-Cell": cell}
    owner = f"owner-{cell.lower()}-{number}"
    made = await client.post("/admin/businesses", json={"name": f"{cell} {number}", "owner": owner}, headers=as_admin)
    made.raise_for_status()
    business = made.json()["data"]["id"]
    key = await client.post(
        f"/merchant/businesses/{business}/api-keys",
        json={"environment": "SANDBOX", "name": "Server"},
        headers=bearer(merchant_token(owner)),
    )
    key.raise_for_status()
    return CellShop(cell, business, owner, key.json()["data"]["secretKey"])
