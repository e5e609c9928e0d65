"""Clients that buy without pause and repeat nothing: what each phase of an upgrade did to them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

CLIENTS = 4
PAUSE = 0.1  # seconds between two payments of one client
TIMEOUT = 30.0
CARD = "4242424242424242"


@dataclass
class Phase:
    name: str
    began: float
    seconds: float = 0.0
    requests: int = 0
    failed: int = 0
    slowest: float = 0.0


@dataclass
class UpgradeLoad:
    """Every answer is looked at; one that is not what the interface says is a fault, and so is none at all."""

    origin: str
    key: str
    phases: list[Phase] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)  # references of payments that we said are paid
    initiated: int = 0
    faults: list[str] = field(default_factory=list)
    _is_over: bool = False

    def phase(self, name: str) -> None:
        self._close()
        self.phases.append(Phase(name, time.monotonic()))

    def _close(self) -> None:
        if self.phases:
            self.phases[-1].seconds = time.monotonic() - self.phases[-1].began

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        clients = [asyncio.create_task(self._client(number)) for number in range(CLIENTS)]
        try:
            yield
        finally:
            self._is_over = True
            await asyncio.gather(*clients)
            self._close()

    async def _client(self, number: int) -> None:
        # Half of the clients keep their connection, half open one for each request.
        limits = httpx.Limits(max_keepalive_connections=None if number % 2 else 0)
        async with httpx.AsyncClient(base_url=self.origin, timeout=TIMEOUT, trust_env=False, limits=limits) as client:
            serial = 0
            while not self._is_over:
                serial += 1
                await self._buy(client, f"client {number} payment {serial}")
                await asyncio.sleep(PAUSE)

    async def _buy(self, client: httpx.AsyncClient, key: str) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        body = {"amount": 15_000, "idempotencyKey": key}
        made = await self._ask(client, "POST", "/payments/initiate", 201, json=body, headers=headers)
        if made is None:
            return
        self.initiated += 1
        reference = made["reference"]
        public = f"/public/payments/{reference}"
        if await self._ask(client, "GET", public, 200) is None:
            return
        choice = {"gatewaySlug": "sandbox", "cardNumber": CARD}
        if await self._ask(client, "POST", f"{public}/process", 200, json=choice) is None:
            return
        verified = await self._ask(client, "GET", f"{public}/verify", 200)
        if verified is None:
            return
        if verified["status"] != "SUCCESS":
            self.faults.append(f"{reference} is {verified['status']}")
            return
        self.acknowledged.append(reference)
        read = await self._ask(client, "GET", f"/payments/{reference}", 200, headers=headers)
        if read is not None and read["status"] != "SUCCESS":
            self.faults.append(f"{reference} reads as {read['status']}")

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, status: int, **more: Any
    ) -> dict[str, Any] | None:
        phase, began = self.phases[-1], time.monotonic()
        phase.requests += 1
        try:
            answer = await client.request(method, f"/api/v1{path}", **more)
        except httpx.TransportError as error:
            said = f"{method} {path}: {error!r}"
        else:
            if answer.status_code == status:
                phase.slowest = max(phase.slowest, time.monotonic() - began)
                return dict(answer.json()["data"])
            said = f"{method} {path}: {answer.status_code} {answer.text[:200]}"
        phase.failed += 1
        self.faults.append(f"{phase.name}: {said}")
        return None
