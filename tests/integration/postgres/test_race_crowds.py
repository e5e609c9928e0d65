"""Sixty-four callers of two servers at one moment, over HTTP, round after round: one charge, one payment."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from lab.races.grid import Grid, a_grid
from lab.races.model import A
from payagg.domain.attempt import payment_reference
from tests.support.http_world import Api, Shop, an_api
from tests.support.rounds import scaled

CALLERS = 64
CROWDS = scaled(2)


@dataclass
class TwoServers:
    grid: Grid
    apis: list[Api]
    shop: Shop

    def client(self, number: int) -> httpx.AsyncClient:
        return self.apis[number % len(self.apis)].client

    async def initiate(self, number: int, key: str) -> httpx.Response:
        body = {"amount": 150_000, "idempotencyKey": key}
        return await self.client(number).post("/payments/initiate", json=body, headers=self.shop.as_sandbox)

    async def process(self, number: int, reference: str, slug: str) -> httpx.Response:
        return await self.client(number).post(f"/public/payments/{reference}/process", json={"gatewaySlug": slug})

    def charges(self, reference: str) -> int:
        """How many were begun at provider_a."""
        calls = self.grid.world.fakes.paystack.book.calls
        return [payment_reference(about) for name, about in calls if name == "initialize"].count(reference)


@pytest.fixture
async def crowd(database_url: str, tmp_path: Path) -> AsyncIterator[TwoServers]:
    async with a_grid(database_url, tmp_path) as grid, AsyncExitStack() as stack:
        apis = [await stack.enter_async_context(an_api(services)) for services in grid.servers]
        yield TwoServers(grid, apis, await apis[0].open_shop())


@pytest.mark.rule("payments.6", "checkout.4")
async def test_64_requests_with_one_key_are_one_payment_and_64_clicks_one_charge(crowd: TwoServers) -> None:
    for turn in range(CROWDS):
        made = await asyncio.gather(*(crowd.initiate(number, f"order {turn}") for number in range(CALLERS)))
        assert Counter(answer.status_code for answer in made) == {201: 1, 200: CALLERS - 1}
        assert len({answer.text for answer in made}) == 1
        reference = made[0].json()["data"]["reference"]
        clicks = [asyncio.create_task(crowd.process(number, reference, A)) for number in range(CALLERS)]
        await asyncio.sleep(random.Random(turn).uniform(0, crowd.grid.spread))
        for gone in clicks[:2]:
            gone.cancel()
        answers = await asyncio.gather(*clicks[2:])
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.text for answer in answers}) == 1
        assert crowd.charges(reference) == 1
