"""Somebody who buys over HTTP: whole journeys, and what every answer said."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx

from payagg.entrypoints.dev.fake_providers import FakePaystack

GOOD = (200, 201)
FINAL = "SUCCESS"
CARD = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
# What may be told beside success: something is away, or one knows already that it is paid. All else is false.
REFUSALS = {(503, "SERVICE_UNAVAILABLE"), (400, "GATEWAY_NOT_AVAILABLE")}
REFUSALS |= {(502, "SERVICE_UNAVAILABLE")}  # HAProxy's, about a server that died with the request
TRULY = {(409, "DUPLICATE_PAYMENT"), (409, "PAYMENT_ALREADY_PROCESSED")}
TIMEOUT = 30.0  # seconds


def a_client(port: int, **more: Any) -> httpx.AsyncClient:
    """Of the server at that port of loopback."""
    limits = httpx.Limits(max_connections=500, max_keepalive_connections=20)
    base = f"http://127.0.0.1:{port}/api/v1/"
    whole: dict[str, Any] = {"base_url": base, "trust_env": False, "timeout": TIMEOUT, "limits": limits}
    return httpx.AsyncClient(**whole | more)


@dataclass
class Purchase:
    """What we were told of one payment."""

    key: str
    amount: int
    reference: str
    slug: str
    sent_to: str = ""  # the provider's page
    is_paid: bool = False  # there
    status: str = ""

    @property
    def public(self) -> str:
        return f"public/payments/{self.reference}"


def refused(answer: httpx.Response) -> tuple[int, str]:
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return answer.status_code, str(answer.json()["error"]["code"]) if is_json else ""


def is_known(answer: httpx.Response, made: Purchase | None) -> bool:
    """Whether it says truly that it is paid already."""
    return made is not None and made.is_paid and refused(answer) in TRULY


@dataclass
class Phase:
    """What became of the requests of some time."""

    name: str = ""
    good: int = 0
    failed: Counter[str] = field(default_factory=Counter)  # by status and code, or by what broke
    slowest: float = 0.0  # seconds until a good answer
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        took = f"{time.monotonic() - self.began:.0f} s, {self.good} good answers, slowest {self.slowest * 1000:.0f} ms"
        return ", ".join([*filter(None, [self.name]), took, *(f"{n} x {what}" for what, n in self.failed.items())])


@dataclass
class Buyer:
    """Asks one of `clients` by chance, with the headers `key` of a business. Pays at the provider, or with the
    sandbox's card. Whoever has seconds to `retry` asks again, with the same words, until the answer is good; others leave it at
    that."""

    clients: Sequence[httpx.AsyncClient]
    key: dict[str, str]
    business: str
    provider: FakePaystack | None = None
    retry: tuple[float, float] | None = None
    acknowledged: dict[str, Purchase] = field(default_factory=dict)  # by idempotency key
    asked: set[str] = field(default_factory=set)  # idempotency keys, answered or not
    writes: list[float] = field(default_factory=list)  # when a payment was acknowledged
    false: list[str] = field(default_factory=list)  # answers that may never be
    phase: Phase = field(default_factory=Phase)
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    async def buy(self, key: str, amount: int) -> Purchase | None:
        """Until it is paid; None where a request failed on the way."""
        made = await self.begin(key, amount)
        if made is None:
            return None
        self.pay(made)
        return made if await self.settle(made) else None

    @property
    def purchases(self) -> list[Purchase]:
        return list(self.acknowledged.values())

    def journey(self, name: str, amount: int = 15_000) -> Callable[[int], Awaitable[None]]:
        """An act of a Load: buys, and reads what was bought."""

        async def goes(number: int) -> None:
            made = await self.buy(f"{name} {number}", amount)
            if made is not None:
                await self.read(made)

        return goes

    async def begin(self, key: str, amount: int) -> Purchase | None:
        """As far as the provider's page."""
        made = await self.order(key, amount)
        if made is None or await self.told("GET", made.public) is None:
            return None
        return made if await self.process(made) else None

    async def order(self, key: str, amount: int, slug: str = "provider_a") -> Purchase | None:
        """Again where it was acknowledged before: it must be the same payment."""
        self.asked.add(key)
        known = self.acknowledged.get(key)
        body = self._order(key, amount, slug)
        first = await self.told("POST", "payments/initiate", known, json=body, headers=self.key)
        if first is None:
            return None
        if (known := self.acknowledged.get(key)) is None:  # nor was it acknowledged meanwhile
            known = self.acknowledged[key] = Purchase(key, amount, first["reference"], slug)
            self.writes.append(time.monotonic())
        elif first and first["reference"] != known.reference:
            self.false.append(f"one key made {known.reference} and {first['reference']}")
        return known

    def _order(self, key: str, amount: int, slug: str) -> dict[str, Any]:
        body = {"amount": amount, "idempotencyKey": key}
        return body if self.provider is None else body | {"gateway": slug}

    async def process(self, made: Purchase) -> bool:
        choice = CARD if self.provider is None else {"gatewaySlug": made.slug}
        told = await self.told("POST", f"{made.public}/process", made, json=choice)
        if told and made.sent_to not in ("", told["checkoutUrl"]):
            self.false.append(f"the payer of {made.reference} is sent somewhere else")
        if told:
            made.sent_to = told["checkoutUrl"]
        return told is not None

    def pay(self, made: Purchase) -> None:
        made.is_paid = True
        if self.provider is not None:
            charges = self.provider.book.charges.values()
            self.provider.pay(next(one.reference for one in charges if made.sent_to.endswith(f"/pay/ac{one.id}")))

    async def settle(self, made: Purchase) -> bool:
        """Verifies until it is paid; once, where nobody asks again."""
        while True:
            told = await self.told("GET", f"{made.public}/verify")
            made.status = "" if told is None else told["status"]
            if made.status == FINAL:
                return True
            if self.retry is None:
                self.false += [f"{made.reference} is paid and told as {made.status}"] if told is not None else []
                return False
            await asyncio.sleep(self.retry[0])

    async def read(self, made: Purchase, *, again: bool = False) -> None:
        """By its reference or, `again`, by its key: it is there, as it was told or further."""
        before = made.status
        if again:
            body = self._order(made.key, made.amount, made.slug)
            answer = await self.ask("POST", "payments/initiate", made, json=body, headers=self.key)
        else:
            answer = await self.ask("GET", f"payments/{made.reference}", headers=self.key)
        if answer is None or answer.status_code not in GOOD:
            return
        said = answer.json()["data"]
        if (said["reference"], said["amount"]) != (made.reference, made.amount):
            self.false.append(f"{made.reference} of {made.amount} reads as {said['reference']} of {said['amount']}")
        elif before == FINAL != said["status"]:
            self.false.append(f"{made.reference} was {FINAL} and is {said['status']}")

    async def told(self, method: str, path: str, made: Purchase | None = None, **more: Any) -> dict[str, Any] | None:
        """The data of a good answer; none of `made`, where that is known to be paid already."""
        while True:
            answer = await self.ask(method, path, made, **more)
            if answer is not None and answer.status_code in GOOD:
                return dict(answer.json()["data"])
            if answer is not None and is_known(answer, made):
                return {}
            if self.retry is None:
                return None
            await asyncio.sleep(self.chance.uniform(*self.retry))

    async def ask(self, method: str, path: str, made: Purchase | None = None, **more: Any) -> httpx.Response | None:
        phase, began = self.phase, time.monotonic()
        try:
            answer = await self.chance.choice(self.clients).request(method, path, **more)
        except httpx.TransportError as error:
            phase.failed[type(error).__name__] += 1
            return None
        if answer.status_code in GOOD:
            phase.good += 1
            phase.slowest = max(phase.slowest, time.monotonic() - began)
            return answer
        if is_known(answer, made):
            return answer
        told = refused(answer)
        phase.failed["{} {}".format(*told)] += 1
        if told not in REFUSALS:
            self.false.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer

    def longest_gap(self) -> tuple[float, float]:
        """Between two acknowledged payments; when it began and ended."""
        return max(pairwise(self.writes), key=lambda pair: pair[1] - pair[0], default=(0.0, 0.0))


@dataclass
class Load:
    """Acts, numbered from 1, until `finish`, and until every one that began has ended."""

    act: Callable[[int], Awaitable[object]]
    every: float  # seconds
    is_over: bool = False
    under_way: set["asyncio.Future[object]"] = field(default_factory=set)

    async def evenly(self) -> None:
        """One begins at each interval, however those before fare."""
        number, began = 0, time.monotonic()
        while not self.is_over:
            number += 1
            task = asyncio.ensure_future(self.act(number))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)
            await asyncio.sleep(max(0.0, began + number * self.every - time.monotonic()))
        await asyncio.gather(*self.under_way)

    async def in_turn(self) -> None:
        """One begins after the one before."""
        number = 0
        while not self.is_over:
            number += 1
            await self.act(number)
            await asyncio.sleep(self.every)

    def finish(self) -> None:
        self.is_over = True


@asynccontextmanager
async def loaded(*loads: Load) -> AsyncIterator[None]:
    """Each goes on in turn until the block is left."""
    running = asyncio.gather(*(load.in_turn() for load in loads))
    yield
    for load in loads:
        load.finish()
    await running
