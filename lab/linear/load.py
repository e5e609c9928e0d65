"""What the clients do, and the histories that come of it: 64 at a time, four at each payment."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from lab.kit.buyer import GOOD, refused
from lab.linear.check import Operation
from lab.linear.model import (
    CARDS,
    FAILED,
    MERCHANT,
    PAYER,
    PENDING,
    REVERSED,
    SIMULATOR,
    STRANGER,
    SUCCESS,
    A,
    Order,
    Told,
)
from payagg.adapters.memory import MemoryStore
from payagg.application.gateways.seed import seed_gateways
from payagg.application.payments.status_checks import HOLD
from payagg.entrypoints.dev.fake_providers import FakePaystack
from tests.support.assembly import services_over
from tests.support.http_world import Shop, an_api, sell_through_provider_a
from tests.support.provider_rigs import credentials_a, fakes_running

ORDERS, CLIENTS, CALLS = 16, 4, 8  # at one time, of each, and of each client
PAUSE = 0.02  # seconds between two calls of a client, at most
AFTER_FAULT = 0.3  # seconds; whoever had no answer waits
VERIFY_EVERY = 2.2  # seconds; more often the provider is not asked
END = 2 * HOLD.total_seconds()  # for all to be quiet; a bound, never an expectation
# How often a client does what.
WISHES = {
    "initiate": 3, MERCHANT: 5, PAYER: 3, STRANGER: 1, "verify": 5, "process": 5, "simulate": 1, "pay": 3, "decline": 1,
}  # fmt: skip


@dataclass
class LinearLoad:
    """`strangers`: the headers of keys that none of these payments belongs to. `wrong`: answers that may never be."""

    shop: Shop
    provider: FakePaystack
    clients: Sequence[httpx.AsyncClient]
    strangers: Sequence[dict[str, str]]
    chance: random.Random
    wrong: list[str] = field(default_factory=list)
    made: int = 0  # operations
    begun: int = 0  # orders
    unknown: Counter[str] = field(default_factory=Counter)
    _looks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ORDERS * CLIENTS))

    async def orders(self, operations: int, at_once: int = ORDERS) -> list[Order]:
        """Those of about so many operations."""
        orders, most = list[Order](), self.made + operations

        async def go_on() -> None:
            while self.made < most:
                self.begun += 1
                order = Order(f"order {self.begun}", 10_000 + self.begun)
                orders.append(order)
                await asyncio.gather(*(self._client(order) for _ in range(CLIENTS)))

        await asyncio.gather(*(go_on() for _ in range(at_once)))
        return orders

    @property
    def answered(self) -> int:
        return self.made - self.unknown.total()

    async def _client(self, order: Order) -> None:
        for _ in range(CALLS):
            await asyncio.sleep(self.chance.uniform(0, PAUSE))
            [wish] = self.chance.choices(list(WISHES), list(WISHES.values())) if order.reference else ["initiate"]
            if wish in ("pay", "decline"):
                self.at_provider(order, wish)
            elif await self.call(order, wish) is None:
                await asyncio.sleep(AFTER_FAULT)

    def at_provider(self, order: Order, wish: str) -> None:
        """What the payer does at the provider's page; a card that is declined there ends the charge by its event."""
        book, now = self.provider.book, time.monotonic()
        names = (order.reference, *(f"{order.reference}.{number}" for number in range(2, 9)))
        charges = (book.charges[name] for name in names if name in book.charges)
        charge = next((one for one in charges if order.sent_to.endswith(f"/pay/ac{one.id}")), None)
        if charge is None or charge.status == "success":
            return
        order.history.append(Operation("report", now, asked=SUCCESS if wish == "pay" else FAILED))
        if wish == "pay":
            order.is_paid = True
            self.provider.pay(charge.reference)
        else:
            self.provider.decline(charge.reference)
            book.emit(self.provider.event(charge, "charge.failed"))

    async def call(self, order: Order, what: str) -> Told | None:
        """Makes a call and adds it to the history."""
        chance = self.chance
        payment, public = f"payments/{order.reference}", f"public/payments/{order.reference}"
        own, body, headers = self.shop.as_sandbox, dict[str, Any](), dict[str, str]()
        method, path = "GET", f"{public}/{what}"
        asked: Any = None
        match what:
            case "initiate":
                method, path, headers = "POST", "payments/initiate", own
                body = {"amount": order.amount, "idempotencyKey": order.key}
            case "process":
                card = chance.choice(list(CARDS))
                is_simulator = chance.random() < 0.5
                asked = (SIMULATOR, CARDS[card]) if is_simulator else (A, "")
                body = {"gatewaySlug": SIMULATOR, "cardNumber": card} if is_simulator else {"gatewaySlug": A}
                method = "POST"
            case "simulate":
                asked = chance.choice((SUCCESS, FAILED, REVERSED))
                method, path, headers, body = "POST", f"{payment}/simulate", own, {"outcome": asked}
            case "read" | "stranger":
                path, headers = payment, own if what == MERCHANT else chance.choice(self.strangers)
            case "public":
                path = public
        self.made += 1
        began = time.monotonic()
        told = await self._told(chance.choice(self.clients), method, path, headers=headers, json=body or None)
        ended = time.monotonic()
        if what == "process" and asked and asked[1]:
            order.history.append(Operation("report", began, asked=asked[1]))
        if told is not None:
            order.history.append(Operation(what, began, ended, asked, told))
            order.reference, order.sent_to = told.reference or order.reference, told.sent_to or order.sent_to
        elif what in ("initiate", "process", "simulate", "verify"):
            order.history.append(Operation(what, began, asked=asked))
        return told

    async def _told(self, client: httpx.AsyncClient, method: str, path: str, **more: Any) -> Told | None:
        try:
            answer = await client.request(method, path, **more)
        except httpx.TransportError as error:
            self.unknown[type(error).__name__] += 1
            return None
        if answer.status_code in GOOD:
            data = answer.json()["data"]
            sent_to = data["checkoutUrl"] if path.endswith("process") else ""
            shown = (data["status"], data.get("gateway") or "", data["reference"], data.get("amount", 0))
            return Told(str(answer.status_code), *shown, sent_to)
        status, code = refused(answer)
        if status != 503:
            if status >= 500:
                self.wrong.append(f"{method} {path}: {status} {code}")
            return Told(code)
        self.unknown[code] += 1
        return None

    async def last_look(self, order: Order, *, verifies: bool) -> None:
        """Once all is quiet what was acknowledged is there, and who has paid is told so, also where nobody `verifies`."""
        verified = read = None
        async with self._looks:  # all at once they would be a load of their own, and have no answer
            over = time.monotonic() + END
            while time.monotonic() < over:
                if order.reference or await self.call(order, "initiate"):
                    verified = await self.call(order, "verify") if verifies else True
                    read = await self.call(order, MERCHANT)
                    if verified and read and not (order.is_paid and read.status == PENDING):
                        return
                await asyncio.sleep(VERIFY_EVERY)
        end = "paid and not told so" if verified and read else "without an answer"
        self.wrong.append(f"{order.key}, {order.reference}: {end} for {END:.0f} s, at last {verified} and {read}")


@asynccontextmanager
async def a_calm_load(seed: int) -> AsyncIterator[LinearLoad]:
    """Over HTTP on the memory store, where nothing fails."""
    async with fakes_running() as fakes, an_api(services_over(MemoryStore())) as api:
        await seed_gateways(api.services.gateways, "builtin", ("provider_a", "provider_b"))
        shop, other = await api.open_shop(), await api.open_shop()
        await sell_through_provider_a(api.client, shop, credentials_a(fakes), api.origin)
        fakes.paystack.book.webhook_urls = {"test": f"{api.origin}/api/v1/webhooks/provider_a/sandbox"}
        strangers = [shop.as_live, other.as_sandbox]
        yield LinearLoad(shop, fakes.paystack, [api.client], strangers, random.Random(seed))
        await fakes.paystack.book.wait_for_deliveries()


async def refused_without_faults(operations: int, seed: int, at_once: int = ORDERS) -> list[str]:
    """What is wrong with so many operations over the memory store."""
    async with a_calm_load(seed) as load:
        orders = await load.orders(operations, at_once)
        return load.wrong + [line for order in orders for line in order.wrong()]
