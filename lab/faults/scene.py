"""Payers before, during and after one fault in one place, and what must hold in the end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lab.faults.cells import Neighbour, NetworkFaultKind
from lab.faults.site import FaultSite, a_fault_site
from lab.kit.buyer import Buyer, Purchase
from lab.kit.judgement import left_over, sweep, wrongs_of, wrongs_of_everything
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.attempt import HandOff, HandOffKind
from payagg.domain.payment import Payment
from payagg.entrypoints.dev.fake_providers import Book, WebhookMode
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
    payment: Payment | None = None  # as it was when acknowledged

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
        if made is not None and payer.payment is None:
            payer.payment = await self.site.world.store.find_payment(made.reference)
            if payer.payment is None or payer.payment.amount != made.amount:
                self.site.wrong.append(f"INV8: {made.reference} was acknowledged and is not there, or is another")
        return made is not None

    async def process(self, payer: FaultPayer) -> bool:
        assert payer.made is not None
        return await self.buyer.process(payer.made)

    def pay(self, made: Purchase) -> None:
        """At the page that the payer was sent to."""
        if made.is_paid:
            return
        made.is_paid = True
        fakes = self.site.world.fakes
        if made.slug == "provider_a":
            charges = fakes.paystack.book.charges.values()
            fakes.paystack.pay(next(one.reference for one in charges if made.sent_to.endswith(f"/pay/ac{one.id}")))
        else:
            parameters = launch_parameters(HandOff(HandOffKind.SDK, made.sent_to))
            known = set(fakes.payaza.book.charges)
            assert fakes.payaza.open(parameters) is None
            [opened] = set(fakes.payaza.book.charges) - known
            fakes.payaza.pay(opened)

    async def go(self, payer: FaultPayer) -> None:
        """Every step again from the first, as far as there are answers."""
        if await self.initiate(payer) and await self.process(payer):
            assert payer.made is not None
            self.pay(payer.made)
            if payer.verifies:
                await self.buyer.told("GET", f"{payer.made.public}/verify")

    async def prepare(self) -> None:
        """Payers at every step; the events of those who have paid wait at the provider."""
        for slug in ("provider_a", "provider_b"):
            self.payers += [
                FaultPayer(len(self.payers) + number, slug, step) for number, step in enumerate(STEPS * EACH)
            ]
        for payer in self.payers:
            behind = STEPS.index(payer.step)
            for take in (self.initiate, self.process)[:behind]:
                while not await take(payer):  # nothing fails yet, but a loaded machine may be late
                    self.site.world.clock.move(PAUSE)
            if payer.step == "paid":
                assert payer.made is not None
                self.pay(payer.made)
        await sweep(self.site.world.services)  # it leaves connections open to everybody

    async def suffer(self, kind: NetworkFaultKind, place: Neighbour) -> tuple[int, int]:
        """Everybody goes on twice: while it strikes always, and while it strikes a few times, so that what follows a
        lost answer is met as well. How often it struck, and how many requests were refused."""
        proxy, stop, failed = self.site.proxies[place], asyncio.Event(), self.buyer.phase.failed
        before = failed.total()
        for book in self._books():
            book.webhooks = WebhookMode.NOW
        working = asyncio.create_task(self._work(stop))
        struck = 0
        for times in (None, OFTEN):
            proxy.impose(kind.fault, times=times)
            await asyncio.gather(*map(self.go, self.payers), *(book.release() for book in self._books()))
            for book in self._books():
                await book.settled()
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
        for _ in range(ROUNDS):
            self.site.world.clock.move(PAUSE)
            await asyncio.gather(*map(self.go, self.payers))
            for book in self._books():
                await book.settled()
            await sweep(self.site.world.services)
            if await self._is_quiet():
                return
        self.site.wrong.append("it never came to rest")

    async def _is_quiet(self) -> bool:
        payments = [payer.payment for payer in self.payers if payer.payment is not None]
        stored = [await self.site.world.read(payment) for payment in payments]
        is_settled = len(stored) == len(self.payers) and all(one.status.value == "SUCCESS" for one in stored)
        return is_settled and not left_over(self.site.world.url)

    async def judge(self) -> None:
        world, wrong = self.site.world, self.site.wrong
        # Between us and the payer nothing fails.
        wrong += [*self.buyer.false, *(f"no answer: {what}" for what in self.buyer.phase.failed if " " not in what)]
        wrong += wrongs_of_everything(world.url)
        of_slug = dict(zip(("provider_a", "provider_b"), self._books(), strict=True))
        for payer in self.payers:
            if payer.payment is not None:
                wrong += await wrongs_of(world, self.site.merchant, of_slug[payer.slug], payer.payment)
        refused = {status for book in self._books() for status in book.answers} - {200, 503}
        if refused:
            wrong.append(f"the providers' events were answered with {refused}")

    def _books(self) -> tuple[Book, Book]:
        fakes = self.site.world.fakes
        return fakes.paystack.book, fakes.payaza.book


async def tried(url: str, folder: Path, kind: NetworkFaultKind, place: Neighbour) -> FaultOutcome:
    """On an empty database."""
    async with a_fault_site(url, folder) as site:
        scene = FaultScene(site, Buyer([site.api.client], site.shop.as_sandbox, site.world.fakes.paystack))
        await scene.prepare()
        struck, refused = await scene.suffer(kind, place)
        await scene.recover()
        await scene.judge()
    return FaultOutcome(struck, refused, site.wrong)
