"""`payagg cell move` beside three cells whose shops go on selling: nothing told is lost.

The contract of two stores cuts a move off at each of its transactions, and lab/crashes kills it at each step.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg
import pytest
from payagg_testing.builders import a_payment

from payagg.adapters.postgres.doctor import examine
from payagg.domain.values import Environment
from payagg.extensions.cells.postgres import DepartureRows
from tests.support.cell_world import NAMES, SECRET, CellWorld, event_about, three_cells
from tests.support.http_world import Api, Shop, admin_token, assert_refused, bearer, working
from tests.support.processes import SECRETS, environment
from tests.support.receivers import Receiver, listening, until
from tests.support.rounds import scaled

OWN, OTHER = NAMES[:2]
SHOPPERS = 6
OLD_PAYMENTS = scaled(600)
CARD = "4242424242424242"
WAIT = 503


@dataclass
class Market:
    """Shoppers of one business who reach its cell through the home cell and wait when they are told to."""

    world: CellWorld
    urls: dict[str, str]
    shop: Shop
    waits: int = 0
    acknowledged: dict[str, int] = field(default_factory=dict)  # amount by reference
    by_key: dict[str, str] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)
    is_open: bool = True

    @property
    def own(self) -> Api:
        return self.world.cells[OWN].api

    @property
    def other(self) -> Api:
        return self.world.cells[OTHER].api

    def rows(self, cell: str, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.urls[cell]) as connection:
            return connection.execute(query.encode()).fetchall()

    async def call(self, method: str, path: str, fine: tuple[int, ...] = (200, 201), **more: Any) -> httpx.Response:
        while True:
            answer = await self.own.client.request(method, path, **more)
            if answer.status_code != WAIT:
                assert answer.status_code in fine, answer.text
                return answer
            assert int(answer.headers["retry-after"]) > 0
            self.waits += 1
            await asyncio.sleep(0.05)

    async def shopper(self, number: int) -> None:
        turn = 0
        while self.is_open:
            turn += 1
            await self.journey(f"cart {number} {turn}", 1000 + number)

    async def journey(self, key: str, amount: int) -> None:
        order = {"amount": amount, "idempotencyKey": key, "metadata": {"cart": key}}
        ask: dict[str, Any] = {"headers": self.shop.as_sandbox, "json": order}
        # The merchant's own retry, at the same moment and later.
        answers = await asyncio.gather(*(self.call("POST", "/payments/initiate", **ask) for _ in range(2)))
        [reference] = {answer.json()["data"]["reference"] for answer in answers}
        self.acknowledged[reference], self.by_key[key] = amount, reference
        place = f"/public/payments/{reference}"
        await self.call("POST", f"{place}/process", json={"gatewaySlug": "sandbox", "cardNumber": CARD})
        # A worker settles it as well, a minute after its hand-off: then the key is refused, and makes nothing either.
        again = await self.call("POST", "/payments/initiate", (200, 409), **ask)
        assert again.status_code == 409 or again.json()["data"]["reference"] == reference
        while True:
            if (await self.call("GET", f"{place}/verify")).json()["data"]["status"] == "SUCCESS":
                break
        self.paid.add(reference)
        read = await self.call("GET", f"/payments/{reference}", headers=self.shop.as_sandbox)
        assert read.json()["data"]["status"] == "SUCCESS"


async def started(market: Market, *, to: str = OTHER, at: str = OTHER) -> asyncio.subprocess.Process:
    """The operator's command, with the database of `at` for the other cell's."""
    settings = {
        "PAYAGG_DATABASE_URL": market.urls[OWN],
        "PAYAGG_TARGET_DATABASE_URL": market.urls[at],
        "PAYAGG_CELLS": ",".join(f"{name}={cell.api.origin}" for name, cell in market.world.cells.items()),
        "PAYAGG_CELL_SECRET": SECRET,
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "payagg", "cell", "move", market.shop.business.id, "--to", to),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(**SECRETS, **settings),
    )


async def moved(market: Market) -> str:
    """What the command said that came to its end."""
    process = await started(market)
    said, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
    return said.decode()


async def refused(market: Market, **options: str) -> str:
    """Why, in one line."""
    process = await started(market, **options)
    _, complaint = await process.communicate()
    assert (process.returncode, complaint.decode().count("\n")) == (1, 1)
    return complaint.decode()


async def taken(market: Market) -> None:
    """The shop's one payment is on its way. It is left where it is while the worker delivers an event of it."""
    services, rows = market.own.services, 0
    async with asyncio.timeout(90):
        while not rows:
            async with services.store.begin() as tx:
                rows = await tx.of(DepartureRows).take(market.shop.business.id, services.clock.now(), 10)
            await asyncio.sleep(0.01)


@pytest.fixture
async def market(database_urls: list[str]) -> AsyncIterator[tuple[Market, Receiver]]:
    receiver = Receiver()
    async with listening(receiver.talk) as port, three_cells(database_urls) as world, AsyncExitStack() as workers:
        shop = await world.cells[OWN].api.open_shop()
        await world.cells[OWN].api.open_gateways()
        await world.replicate_gateways()
        for cell in world.cells.values():
            await workers.enter_async_context(working(cell.api.services))
        endpoint = {"url": f"http://127.0.0.1:{port}/hooks", "environment": "SANDBOX"}
        made = await world.cells[OWN].api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=endpoint)
        made.raise_for_status()
        yield Market(world, dict(zip(NAMES, database_urls, strict=True)), shop), receiver


async def old_payments(market: Market, count: int) -> None:
    """Of earlier days, still open: each is one that a batch has to carry."""
    api = market.own
    now = api.services.clock.now()

    async def add(number: int) -> None:
        reference, key = api.services.payments.entropy.reference(now), f"old {number}"
        business_id, amount = market.shop.business.id, 2000 + number
        payment = a_payment(
            now=now, reference=reference, business_id=business_id, amount=amount, idempotency_key=key,
            environment=Environment.SANDBOX,
        )  # fmt: skip
        stored, _ = await api.services.store.add_payment(payment)
        market.acknowledged[stored.reference], market.by_key[key] = amount, stored.reference

    await asyncio.gather(*(add(number) for number in range(count)))


def assert_kept(market: Market) -> None:
    """Every acknowledged payment is at the other cell, once, under its key, and the totals agree."""
    rows = "SELECT reference, amount, idempotency_key FROM payments"
    assert market.rows(OWN, rows) == []
    there = market.rows(OTHER, rows)
    assert {reference: amount for reference, amount, _ in there} == market.acknowledged
    assert {key: reference for reference, _, key in there} == market.by_key
    keys = "SELECT key, reference FROM idempotency_keys"
    assert dict(market.rows(OTHER, keys)) == market.by_key
    assert market.rows(OWN, keys) == []
    for url in market.urls.values():
        findings = examine(url)
        assert [(one.rule, one.breaches) for one in findings.rules if not one.is_kept] == []
        assert findings.anomalies == []


@asynccontextmanager
async def shopping(market: Market) -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    """Shoppers come and go until the block is left; what it gives waits for so many more paid carts."""
    tasks = [asyncio.create_task(market.shopper(number)) for number in range(SHOPPERS)]

    async def more(carts: int) -> None:
        wanted = len(market.paid) + carts
        await until(lambda: len(market.paid) >= wanted or any(task.done() for task in tasks))
        for task in tasks:
            if task.done():
                task.result()

    try:
        yield more
    finally:
        market.is_open = False
        await asyncio.gather(*tasks)


async def test_a_move_under_load_loses_nothing(market: tuple[Market, Receiver]) -> None:
    town, receiver = market
    await old_payments(town, OLD_PAYMENTS)
    async with shopping(town) as more:
        await more(2 * SHOPPERS)
        said = await moved(town)
        await more(2 * SHOPPERS)  # the shop goes on there
    assert f"is in the cell {OTHER}" in said
    assert town.waits  # whichever request a shopper was at
    await until(lambda: set(receiver.told("payment.success")) >= town.paid)
    await until(lambda: not town.rows(OTHER, "SELECT FROM deliveries WHERE status = 'PENDING'"))
    assert_kept(town)
    [(successful, failed)] = town.rows(OTHER, "SELECT successful, failed FROM webhook_endpoints")
    logged = town.rows(OTHER, "SELECT count(*) FROM deliveries WHERE status = 'DELIVERED'")
    assert [(successful,)] == logged
    assert failed == 0


async def leads_to_where_it_is(town: Market, reference: str) -> None:
    shop, client = town.shop, town.own.client
    as_admin = bearer(admin_token())
    for path, headers in (
        ("/payments/context", shop.as_sandbox),
        (f"/payments/{reference}", shop.as_sandbox),
        (f"/public/payments/{reference}", {}),
        (f"/public/payments/{reference}/verify", {}),
        (f"{shop.path}/gateways", shop.as_owner),
        (shop.path, shop.as_owner),
        (f"/admin/businesses/{shop.business.id}", as_admin),
        (f"/admin/payments/{reference}/story", as_admin),
    ):
        for cell in (client, town.other.client):
            assert (await cell.get(path, headers=headers)).status_code == 200
    for cell in (client, town.other.client):
        assert_refused(await cell.get(f"/public/payments/{reference}/nothing"), 404, "NOT_FOUND")
    page = await client.get(f"{town.own.origin}/checkout/{reference}")
    assert page.status_code == 200
    # An event about it is handled where it is, whichever cell hears of it; the cell that made it keeps it until then.
    body, signed = event_about(reference)
    for told in (client, town.other.client, town.world.cells[NAMES[2]].api.client):
        heard = await told.post("/webhooks/provider_a/sandbox", content=body, headers=signed)
        assert heard.status_code == 200, heard.text
    [[(kept,)], [(told,)], none] = [town.rows(name, "SELECT result FROM inbox") for name in NAMES]
    assert (kept, told, none) == ("HANDED_OVER", "ANOMALY", [])  # nobody was handed off to that provider
    assert len(town.rows(OTHER, "SELECT FROM anomalies")) == 1
    assert town.rows(OWN, "SELECT FROM anomalies") == []
    # What never was here is refused as ever.
    assert_refused(await client.get("/public/payments/PAY-20250131-7K2M9X"), 404, "PAYMENT_NOT_FOUND")
    assert_refused(
        await client.get("/payments/context", headers=bearer("ssk_sand_" + "0" * 48)), 401, "INVALID_API_KEY"
    )
    assert_refused(await client.get("/merchant/businesses/biz_9", headers=shop.as_owner), 403, "FORBIDDEN")
    assert (await client.get("/admin/businesses", headers=as_admin)).json()["data"]["businesses"] == []


async def test_a_cell_says_to_wait_while_a_business_leaves_it_and_then_sends_on(
    market: tuple[Market, Receiver],
) -> None:
    town, _ = market
    assert "--to must be one of PBX, PCX" in await refused(town, to="PDX")
    assert f"is not the database that the cell {OTHER} answers from" in await refused(town, at=NAMES[2])
    await town.journey("cart", 1000)  # its keys still hold
    [reference] = town.paid
    own = town.own
    async with own.services.store.begin() as tx:
        assert await tx.of(DepartureRows).close(town.shop.business.id, OTHER, own.services.clock.now())
    initiate: dict[str, Any] = {"headers": town.shop.as_sandbox, "json": {"amount": 1000}}
    for answer in (
        await own.client.post("/payments/initiate", **initiate),
        await own.client.get(f"{town.shop.path}/gateways", headers=town.shop.as_owner),
    ):
        assert_refused(answer, WAIT, "SERVICE_UNAVAILABLE")
        assert 1 <= int(answer.headers["retry-after"]) <= 4
    assert (await own.client.get(f"/public/payments/{reference}")).status_code == 200
    await taken(town)
    page = await own.client.get(f"{own.origin}/checkout/{reference}")
    assert page.status_code == WAIT
    # An administrator is told to wait as well, and changes nothing of it.
    change: dict[str, Any] = {"headers": bearer(admin_token()), "json": {"status": "SUSPENDED"}}
    for answer in (
        await own.client.get(f"/public/payments/{reference}"),
        await own.client.patch(f"/admin/businesses/{town.shop.business.id}", **change),
    ):
        assert_refused(answer, WAIT, "SERVICE_UNAVAILABLE")
    assert await moved(town)
    assert_kept(town)
    await leads_to_where_it_is(town, reference)
