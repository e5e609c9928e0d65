"""Payments through one deployment at an even pace, and a record of every answer: what it told must stay true."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx

from tests.ha.deployment import ServedRoute

EVERY = 0.25  # seconds between two payments, however the ones before fare
READ_EVERY = 0.2
RETRY = (1.0, 2.0)  # seconds, as Retry-After bids
FINAL = "SUCCESS"
TRULY = "DUPLICATE_PAYMENT"  # whoever repeats the key of a payment that is paid is told so


@dataclass
class Purchase:
    """What we were told of one payment."""

    key: str
    amount: int
    reference: str = ""
    is_handed_over: bool = False
    status: str = ""


@dataclass
class RouteLoad:
    deployment: ServedRoute
    name: str  # of the cell: keys begin with it
    purchases: list[Purchase] = field(default_factory=list)
    acknowledged: int = 0  # answers that promised something
    writes: list[float] = field(default_factory=list)  # when a payment was acknowledged
    failed: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    _is_over: bool = False
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _chance: random.Random = field(default_factory=lambda: random.Random(7))

    async def run(self) -> None:
        """Until `finish`, and until everybody who began has paid."""
        reading = asyncio.create_task(self._read_again())
        number = 0
        began = time.monotonic()
        while not self._is_over:
            number += 1
            task = asyncio.create_task(self._buy(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(max(0.0, began + number * EVERY - time.monotonic()))
        await asyncio.gather(*self._tasks)
        await reading

    def finish(self) -> None:
        self._is_over = True

    async def _buy(self, number: int) -> None:
        made = Purchase(f"{self.name} {number}", 10_000 + number)
        body = {"amount": made.amount, "gateway": "provider_a", "idempotencyKey": made.key}
        headers = self.deployment.shop.as_sandbox
        first = await self._told("POST", "payments/initiate", json=body, headers=headers)
        self.writes.append(time.monotonic())
        made.reference = first["reference"]
        self.purchases.append(made)
        public = f"public/payments/{made.reference}"
        await self._told("POST", f"{public}/process", json={"gatewaySlug": "provider_a"})
        made.is_handed_over = True
        book = self.deployment.provider.book
        self.deployment.provider.pay([one for one in book.charges if one.partition(".")[0] == made.reference][-1])
        while made.status != FINAL:
            made.status = (await self._told("GET", f"{public}/verify"))["status"]
            if made.status != FINAL:
                await asyncio.sleep(RETRY[0])

    async def _told(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """The data of a good answer. Whoever has none asks again, with the same words."""
        while True:
            answer = await self._ask(method, path, **more)
            if answer is not None and answer.status_code in (200, 201):
                self.acknowledged += 1
                return dict(answer.json()["data"])
            await asyncio.sleep(self._chance.uniform(*RETRY))

    async def _ask(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        try:
            answer = await self._chance.choice(self.deployment.clients).request(method, path, **more)
        except httpx.TransportError as error:
            self.failed[type(error).__name__] += 1
            return None
        if answer.status_code == 404:
            self.false.append(f"{method} {path}: 404")
        if answer.status_code not in (200, 201):
            code = answer.json()["error"]["code"] if answer.status_code < 500 else ""
            if code != TRULY:
                self.failed[f"{answer.status_code} {code}".strip()] += 1
        return answer

    async def _read_again(self) -> None:
        """What was acknowledged, at random: it must be there, as it was told or further."""
        while not self._is_over:
            await asyncio.sleep(READ_EVERY)
            if not self.purchases or len(self._tasks) > 400:
                continue
            task = asyncio.create_task(self._read(self._chance.choice(self.purchases[-200:])))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _read(self, made: Purchase) -> None:
        before = made.status
        headers = self.deployment.shop.as_sandbox
        if self._chance.random() < 0.8:
            answer = await self._ask("GET", f"payments/{made.reference}", headers=headers)
        else:
            body = {"amount": made.amount, "gateway": "provider_a", "idempotencyKey": made.key}
            answer = await self._ask("POST", "payments/initiate", json=body, headers=headers)
        if answer is None or answer.status_code not in (200, 201):
            return
        said = answer.json()["data"]
        if said["reference"] != made.reference or said["amount"] != made.amount:
            self.false.append(f"{made.reference} of {made.amount} reads as {said['reference']} of {said['amount']}")
        elif before == FINAL and said["status"] != FINAL:
            self.false.append(f"{made.reference} was {FINAL} and is {said['status']}")

    def told_the_merchant(self) -> Counter[str]:
        """How many events, each by its id, say that a payment is paid."""
        return self.deployment.merchant.told("payment.success")

    def longest_gap(self) -> tuple[float, float]:
        """Between two acknowledged payments; when it began and ended."""
        return max(pairwise(self.writes), key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0))
