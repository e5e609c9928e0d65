"""Payers before, during and after one fault in one place, and what must hold in the end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from lab.faults.cells import Neighbour, NetworkFaultKind
from lab.faults.site import FaultSite, a_fault_site
from lab.kit.judgement import left_over, sweep, wrongs_of, wrongs_of_everything
from payagg.application.ports import Conflict, Unavailable
from payagg.domain.attempt import HandOff, HandOffKind
from payagg.domain.payment import Payment
from payagg.entrypoints.dev.fake_providers import Book, WebhookMode
from tests.support.provider_rigs import launch_parameters

EACH = 2  # payers of each provider at each step
STEPS = ("nothing", "initiated", "processed", "paid")  # what a payer has behind when the fault begins
OFTEN = 4  # strikes
ROUNDS, PAUSE = 30, timedelta(minutes=1)  # afterwards, until all is quiet: within the checkout's hour
# What a caller may be told while something is away, beside success. Everything else is wrong, 500 above all.
REFUSALS = {(503, "SERVICE_UNAVAILABLE"), (400, "GATEWAY_NOT_AVAILABLE")}
OF_THE_PAID = {(409, "PAYMENT_ALREADY_PROCESSED"), (409, "DUPLICATE_PAYMENT")}


@dataclass
class FaultPayer:
    """One who buys something, and what was acknowledged. Every other one closes the browser and never verifies."""

    number: int
    slug: str
    step: str
    payment: Payment | None = None  # as it was when acknowledged
    sent_to: str = ""
    is_paid: bool = False

    @property
    def amount(self) -> int:
        return 150_000 + 100 * self.number

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
    payers: list[FaultPayer] = field(default_factory=list)
    refused: int = 0

    @property
    def wrong(self) -> list[str]:
        return self.site.wrong

    # --- what payers and the merchant's server do --------------------------------------------------------------------

    async def initiate(self, payer: FaultPayer) -> bool:
        body = {"amount": payer.amount, "idempotencyKey": f"order {payer.number}"}
        told = await self._ask(payer, "/payments/initiate", json=body, headers=self.site.shop.as_sandbox)
        if told is None:
            return False
        if payer.payment is None:
            stored = await self.site.world.store.find_payment(told["reference"])
            if stored is None or (stored.amount, stored.business_id) != (payer.amount, self.site.shop.business.id):
                self.wrong.append(f"INV8: {told['reference']} was acknowledged and is not there, or is another")
                return False
            payer.payment = stored
        elif told and payer.payment.reference != told["reference"]:
            self.wrong.append(f"INV6: one key made {payer.payment.reference} and {told['reference']}")
        return True

    async def process(self, payer: FaultPayer) -> bool:
        assert payer.payment is not None
        place = f"/public/payments/{payer.payment.reference}/process"
        told = await self._ask(payer, place, json={"gatewaySlug": payer.slug})
        if told is None:
            return False
        if told and payer.sent_to not in ("", told["checkoutUrl"]):
            self.wrong.append(f"INV8: the payer of {payer.payment.reference} was sent somewhere else")
        payer.sent_to = payer.sent_to or told.get("checkoutUrl", "")
        return True

    def pay(self, payer: FaultPayer) -> None:
        """At the page that the payer was sent to."""
        if payer.is_paid:
            return
        payer.is_paid = True
        fakes = self.site.world.fakes
        if payer.slug == "provider_a":
            charges = fakes.paystack.book.charges.values()
            fakes.paystack.pay(next(one.reference for one in charges if payer.sent_to.endswith(f"/pay/ac{one.id}")))
        else:
            parameters = launch_parameters(HandOff(HandOffKind.SDK, payer.sent_to))
            known = set(fakes.payaza.book.charges)
            assert fakes.payaza.open(parameters) is None
            [opened] = set(fakes.payaza.book.charges) - known
            fakes.payaza.pay(opened)

    async def verify(self, payer: FaultPayer) -> None:
        assert payer.payment is not None
        if payer.verifies:
            await self._ask(payer, f"/public/payments/{payer.payment.reference}/verify", method="GET")

    async def go(self, payer: FaultPayer) -> None:
        """Every step again from the first, as far as there are answers."""
        if await self.initiate(payer) and await self.process(payer):
            self.pay(payer)
            await self.verify(payer)

    async def _ask(self, payer: FaultPayer, path: str, *, method: str = "POST", **more: Any) -> dict[str, Any] | None:
        """The data of an answer; empty when the payment is known to be paid, None when the caller may try again."""
        try:
            answer = await self.site.api.client.request(method, path, **more)
        except httpx.TransportError as error:
            self.wrong.append(f"{path}: no answer, {type(error).__name__}")
            return None
        if answer.is_success:
            data: dict[str, Any] = answer.json()["data"]
            return data
        told = (answer.status_code, answer.json()["error"]["code"])
        if payer.is_paid and told in OF_THE_PAID:
            return {}
        self.refused += 1
        if told not in REFUSALS:
            self.wrong.append(f"{path}: {told}")
        return None

    # --- before, during and after ------------------------------------------------------------------------------------

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
                self.pay(payer)
        await sweep(self.site.world.services)  # it leaves connections open to everybody

    async def suffer(self, kind: NetworkFaultKind, place: Neighbour) -> tuple[int, int]:
        """Everybody goes on twice: while it strikes always, and while it strikes a few times, so that what follows a
        lost answer is met as well. How often it struck, and how many requests were refused."""
        proxy, stop, before = self.site.proxies[place], asyncio.Event(), self.refused
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
        return struck, self.refused - before

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
        self.wrong.append("it never came to rest")

    async def _is_quiet(self) -> bool:
        payments = [payer.payment for payer in self.payers if payer.payment is not None]
        stored = [await self.site.world.read(payment) for payment in payments]
        is_settled = len(stored) == len(self.payers) and all(one.status.value == "SUCCESS" for one in stored)
        return is_settled and not left_over(self.site.world.url)

    async def judge(self) -> None:
        world = self.site.world
        self.wrong.extend(wrongs_of_everything(world.url))
        of_slug = dict(zip(("provider_a", "provider_b"), self._books(), strict=True))
        for payer in self.payers:
            if payer.payment is not None:
                self.wrong.extend(await wrongs_of(world, self.site.merchant, of_slug[payer.slug], payer.payment))
        refused = {status for book in self._books() for status in book.answers} - {200, 503}
        if refused:
            self.wrong.append(f"the providers' events were answered with {refused}")

    def _books(self) -> tuple[Book, Book]:
        fakes = self.site.world.fakes
        return fakes.paystack.book, fakes.payaza.book


async def tried(url: str, folder: Path, kind: NetworkFaultKind, place: Neighbour) -> FaultOutcome:
    """On an empty database."""
    async with a_fault_site(url, folder) as site:
        scene = FaultScene(site)
        await scene.prepare()
        struck, refused = await scene.suffer(kind, place)
        await scene.recover()
        await scene.judge()
    return FaultOutcome(struck, refused, site.wrong)
