"""Each fault of a network x Postgres, each provider, a merchant's webhook handler; or faults drawn by chance.

A proxy stands before each of them. Sixteen payers are at every step when the fault begins; afterwards callers who were
not answered repeat themselves, a worker goes on until nothing is due, and the invariants INV1 to INV8 are checked, no
answer is a 500, and nobody is called while a database connection is held.
"""

import argparse
import asyncio
import logging
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import structlog

from lab.faults.network import KINDS, FaultSite, Neighbour, NetworkFaultKind, a_fault_site, drawn
from lab.kit.buyer import Buyer, Purchase
from lab.kit.figures import RunSummary
from lab.kit.judgement import left_over, paid_in, sweep, wrongs
from lab.kit.places import databases
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.attempt import HandOff, HandOffKind
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.provider_rigs import launch_parameters

EACH = 2  # payers of each provider at each step
STEPS = ("nothing", "initiated", "processed", "paid")  # what a payer has behind when the fault begins
OFTEN = 4  # strikes
ROUNDS, PAUSE = 30, timedelta(minutes=1)  # afterwards, until all is quiet: within the checkout's hour


@dataclass
class FaultPayer:
    """Every other one closes the browser and never verifies."""

    number: int
    slug: str
    step: str
    made: Purchase | None = None

    @property
    def verifies(self) -> bool:
        return self.number // len(STEPS) % 2 == 0


@dataclass(frozen=True)
class FaultOutcome:
    """How often the fault struck, how many requests were refused meanwhile, and what does not hold."""

    struck: int
    refused: int
    wrong: list[str]


@dataclass
class FaultScene:
    site: FaultSite
    buyer: Buyer
    payers: list[FaultPayer] = field(default_factory=list)

    async def initiate(self, payer: FaultPayer) -> bool:
        made = await self.buyer.order(f"order {payer.number}", 150_000 + 100 * payer.number, payer.slug)
        payer.made = made or payer.made
        return made is not None

    async def process(self, payer: FaultPayer) -> bool:
        assert payer.made is not None
        return await self.buyer.process(payer.made)

    def pay(self, payer: FaultPayer) -> None:
        """At the page that the payer was sent to."""
        made, fakes = payer.made, self.site.world.fakes
        assert made is not None
        if made.is_paid:
            return
        if made.slug == "provider_a":
            self.buyer.pay(made)
        else:
            made.is_paid = True
            parameters = launch_parameters(HandOff(HandOffKind.SDK, made.sent_to))
            known = set(fakes.payaza.book.charges)
            assert fakes.payaza.open(parameters) is None
            [opened] = set(fakes.payaza.book.charges) - known
            fakes.payaza.pay(opened)

    async def go(self, payer: FaultPayer) -> None:
        """Every step again from the first, as far as there are answers."""
        if await self.initiate(payer) and await self.process(payer):
            self.pay(payer)
            if payer.verifies and payer.made is not None:
                await self.buyer.told("GET", f"{payer.made.public}/verify")

    async def prepare(self) -> None:
        """Payers at every step; the events of those who have paid wait at the provider."""
        for slug in self.site.books:
            first = len(self.payers)
            self.payers += [FaultPayer(first + number, slug, step) for number, step in enumerate(STEPS * EACH)]
        for payer in self.payers:
            for take in (self.initiate, self.process)[: STEPS.index(payer.step)]:
                while not await take(payer):  # nothing fails yet, but a loaded machine may be late
                    self.site.world.clock.move(PAUSE)
            if payer.step == "paid":
                self.pay(payer)
        await sweep(self.site.world.services)  # it leaves connections open to everybody

    async def suffer(self, kind: NetworkFaultKind, place: Neighbour) -> tuple[int, int]:
        """Everybody goes on twice: while it strikes always, and while it strikes a few times, so that what follows a
        lost answer is met as well. How often it struck, and how many requests were refused."""
        proxy, stop, failed = self.site.proxies[place], asyncio.Event(), self.buyer.phase.failed
        before, struck, books = failed.total(), 0, self.site.books.values()
        for book in books:
            book.webhooks = WebhookMode.NOW
        working = asyncio.create_task(self._work(stop))
        for times in (None, OFTEN):
            proxy.impose(kind.fault, times=times)
            await asyncio.gather(*map(self.go, self.payers), *(book.release() for book in books))
            for book in books:
                await book.wait_for_deliveries()
            struck += proxy.struck
            # A claim whose COMMIT went without an answer is somebody's until its lease is over.
            self.site.world.clock.move(PAUSE)
        stop.set()
        await working
        proxy.heal()
        return struck, failed.total() - before

    async def _work(self, stop: asyncio.Event) -> None:
        """A worker, as one that is kept running; at least one round."""
        while True:
            with suppress(Unavailable, Conflict):
                await sweep(self.site.world.services)
            if stop.is_set():
                return
            await asyncio.sleep(0.05)

    async def recover(self) -> None:
        """Callers who were not answered repeat themselves, and a worker goes on until nothing is due."""
        url = self.site.world.url
        for _ in range(ROUNDS):
            self.site.world.clock.move(PAUSE)
            await asyncio.gather(*map(self.go, self.payers))
            for book in self.site.books.values():
                await book.wait_for_deliveries()
            await sweep(self.site.world.services)
            if len(paid_in(url)) == len(self.payers) and not left_over(url):
                return
        self.site.wrong.append("it never came to rest")

    def judge(self) -> None:
        site = self.site
        # Between us and the payer nothing fails.
        site.wrong += [f"no answer: {what}" for what in self.buyer.phase.failed if " " not in what]
        site.wrong += wrongs(site.world.url, [self.buyer], site.books, site.merchant, is_quiet=True)
        refused = {status for book in site.books.values() for status in book.answers} - {200, 503}
        site.wrong += [f"the providers' events were answered with {refused}"] if refused else []


async def tried(url: str, folder: Path, kind: NetworkFaultKind, place: Neighbour) -> FaultOutcome:
    """On an empty database."""
    async with a_fault_site(url, folder) as site:
        buyer = Buyer([site.api.client], site.shop.as_sandbox, site.shop.business.id, site.world.fakes.paystack)
        scene = FaultScene(site, buyer)
        await scene.prepare()
        struck, refused = await scene.suffer(kind, place)
        await scene.recover()
        scene.judge()
    return FaultOutcome(struck, refused, site.wrong)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab faults", description=__doc__)
    parser.add_argument("--only", default="", help="a fault or a place: drip, commit, postgres, merchant")
    parser.add_argument("--drawn", type=int, default=0, help="so many faults drawn by chance, in place of the table")
    first = random.SystemRandom().randrange(10_000)
    parser.add_argument("--seed", type=int, default=first, help="of the first of them")
    chosen = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    cells = [(kind, place) for kind in KINDS for place in kind.places]
    table = [(kind, place) for kind, place in cells if chosen.only.lower() in f"{kind.name} {place.value}".lower()]
    tally, idle = RunSummary("faults", arguments), 0
    with databases("faults") as made:
        for kind, place in [drawn(chosen.seed + turn) for turn in range(chosen.drawn)] or table:
            began = time.monotonic()
            with made.fresh() as (url, folder):
                found = asyncio.run(tried(url, folder, kind, place))
            idle += not found.struck
            # One that is drawn may strike nobody; of the table's each must.
            wrong = found.wrong + ["it never struck"] * (not found.struck and not chosen.drawn)
            counts = f"{found.struck} struck, {found.refused} refused, {time.monotonic() - began:.1f} s"
            tally.line(f"{kind.name:<15} {place.value:<13} {counts:<34} {kind.words}", wrong)
    if chosen.drawn:
        status = tally.end(whole=chosen.drawn >= 100, name="faults drawn", idle=idle)
        return 1 if idle == chosen.drawn else status
    return tally.end(whole=not chosen.only)
