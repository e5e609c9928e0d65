"""Each step of a payment x our process killed, Postgres killed, connections cut.

After each crash everything starts again, callers who were not answered repeat themselves, workers go on until nothing
is due, and the invariants INV1 to INV8 are checked (lab/kit/judgement.py).
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psycopg
from payagg_testing.builders import AN_ADMIN, a_business, a_key

from lab.crashes.child import AMOUNT, GATEWAY, KEY, REACHED, CrashKind
from lab.kit.buyer import Buyer, Purchase
from lab.kit.figures import RunSummary
from lab.kit.judgement import left_over, sweep, wrongs
from lab.kit.places import Databases, databases, long_ago
from lab.kit.processes import until
from lab.kit.site import Installed
from payagg.adapters.logos import ObjectLogos
from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.registry import providers_of
from payagg.application.payments.provider_events import FIRST_RETRY
from payagg.application.payments.status_checks import HOLD
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.application.schemas.webhooks import CreateWebhook
from payagg.application.webhooks.dispatcher import LEASE as DELIVERY_LEASE
from payagg.domain.attempt import CHECK_AFTER, LEASE, VERIFY_EVERY
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import Book, WebhookMode
from tests.support.assembly import SETTINGS, services_over
from tests.support.images import an_image
from tests.support.provider_world import World, world_on
from tests.support.receivers import Receiver, a_receiver

PATIENCE = 60.0  # seconds for Postgres to be back; a bound, never an expectation
SECOND = timedelta(seconds=1)
ROUNDS = 20  # of the worker, until nothing is due


@dataclass(frozen=True)
class Label:
    """`verb` is what the process does that meets the step; `step` is how its ports call that moment."""

    name: str
    at: str
    verb: str
    step: str


LABELS = (
    Label("I1", "initiate: the request is valid, nothing is inserted", "initiate", "add"),
    Label("I2", "initiate: inserted, before COMMIT", "initiate", "commit"),
    Label("I3", "initiate: committed, before the reply", "initiate", "reply"),
    Label("P1", "process: before the claim", "process", "claim"),
    Label("P2", "process: claim committed, before the provider's call", "process", "P2"),
    Label("P3", "process: the provider has the charge, its answer is not noted", "process", "answered"),
    Label("P4", "process: the answer is noted, before the hand-off's COMMIT", "process", "P4"),
    Label("P5", "process: committed, before the reply", "process", "P5"),
    Label("W1", "inbound event: signature proven, nothing kept", "receive", "W1"),
    Label("W2", "inbound event: kept in the inbox", "receive", "W2"),
    Label("W3", "inbound event: payment moved, before COMMIT", "receive", "commit"),
    Label("W4", "inbound event: committed, before the 200", "receive", "W4"),
    Label("V1", "verify: the provider has answered", "verify", "V1"),
    Label("V2", "verify: committed, before the reply", "verify", "V2"),
    Label("O1", "outbox: delivery claimed", "deliver", "claimed"),
    Label("O2", "outbox: sent, the merchant's answer not read", "deliver", "unread"),
    Label("O3", "outbox: answer read, before it is recorded", "deliver", "sent"),
    Label("J1", "reconciler: the provider has answered, nothing is noted", "reconcile", "answered"),
    Label("J2", "reconciler: payment moved, before COMMIT", "reconcile", "commit"),
    Label("J3", "worker: the event of that sent, the merchant's answer not read", "reconcile", "unread"),
    Label("L1", "logo: file written, before the row", "logo", "put"),
    Label("L2", "logo: row committed, before the old file goes", "logo", "delete"),
)


@dataclass
class Scene:
    """One business, one payment and one crash. `told` is what the caller heard of the process, None for nothing."""

    world: World
    merchant: Receiver
    label: Label
    kind: CrashKind
    buyer: Buyer
    previous: Installed | None = None  # of the process that crashes; all others are of this release
    payment: Payment | None = None
    told: str | None = None
    ended: int = 0
    wrong: list[str] = field(default_factory=list)

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    async def prepare(self) -> list[str]:
        """Brings everything to where the process begins; its words."""
        world, verb = self.world, self.label.verb
        if verb == "initiate":
            return []
        if verb == "logo":
            await world.services.gateways.upload_logo(GATEWAY, an_image("PNG"), by=AN_ADMIN)
            return []
        payment = self.payment = await world.payment(idempotency_key=KEY)
        self.know(payment.reference)
        if verb == "process":
            return [payment.reference, "provider_a"]
        self.pay((await world.process(payment)).checkout_url)
        if verb == "receive":
            return self.event()
        if verb == "reconcile":
            world.clock.move(CHECK_AFTER[0] * 2)
        if verb == "deliver":
            await world.services.verification.verify(payment.reference)
        return [payment.reference]

    def know(self, reference: str) -> None:
        """The payment that the one caller made."""
        self.buyer.asked.add(KEY)
        self.buyer.acknowledged[KEY] = Purchase(KEY, AMOUNT, reference, "provider_a")

    def pay(self, sent_to: str) -> None:
        """At the page that the payer was sent to."""
        made = self.buyer.acknowledged[KEY]
        made.sent_to = sent_to
        self.buyer.pay(made)

    @property
    def book(self) -> Book:
        return self.world.fakes.paystack.book

    def event(self) -> list[str]:
        assert self.payment is not None
        sent = self.world.fakes.paystack.event(self.book.charges[self.payment.reference])
        return [sent.body.decode(), "x-provider_a-signature", sent.headers["x-provider_a-signature"]]

    async def crash(self, words: list[str]) -> None:
        world = self.world
        arguments = [world.url, str(world.folder), world.clock.now().isoformat(), self.label.step, self.kind.name]
        python, path = self.previous or (sys.executable, os.pathsep.join(sys.path))
        child = await asyncio.create_subprocess_exec(
            *(python, "-P", "-m", "lab.crashes.child", *arguments, self.label.verb, *words),
            env=os.environ | {"PYTHONPATH": path},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        said, _ = await child.communicate()
        self.ended = child.returncode or 0
        self.told = said.decode().strip() if self.ended == 0 else None
        self.expect((world.folder / REACHED).exists(), "the step was never reached")
        self.expect((self.ended == -9) is (self.kind is CrashKind.PROCESS), f"the process ended with {self.ended}")
        await asyncio.to_thread(until, lambda: _answers(world.url), "Postgres is back", PATIENCE)

    async def recover(self) -> None:
        """What callers do who were not answered, and what workers do; until nothing is due."""
        await getattr(self, f"_after_{self.label.verb}")()
        await self.quiet()

    async def _after_initiate(self) -> None:
        services = self.world.services
        command = DashboardPayment(amount=AMOUNT, idempotency_key=KEY)
        again = [await services.payments.initiate_test(command, a_business(), by=AN_ADMIN) for _ in range(2)]
        references = {one.payment.reference for one in again} | ({self.told} if self.told else set())
        self.expect(len(references) == 1, f"INV6: one key made {references}")
        self.know(again[0].payment.reference)
        await services.payments.simulate(again[0].payment.reference, "SUCCESS", "biz_1", by=AN_ADMIN)

    async def _after_process(self) -> None:
        world, payment = self.world, self.payment
        assert payment is not None
        world.clock.move(LEASE + SECOND)
        processed = await world.process(payment)
        self.expect(self.told in (None, processed.checkout_url), "INV8: the payer was sent somewhere else")
        self.pay(processed.checkout_url)
        await self._after_verify()

    async def _after_verify(self) -> None:
        assert self.payment is not None
        self.world.clock.move(VERIFY_EVERY)
        await self.world.services.verification.verify(self.payment.reference)

    async def _after_receive(self) -> None:
        if self.told is None:  # not acknowledged, so the provider sends it again
            body, header, signature = self.event()
            route = PROVIDERS[0].routes[0]
            await self.world.services.provider_events.receive(route, body.encode(), {header: signature})
        self.world.clock.move(FIRST_RETRY + SECOND)

    async def _after_reconcile(self) -> None:
        self.world.clock.move(HOLD)

    async def _after_deliver(self) -> None:
        """The worker alone."""

    async def _after_logo(self) -> None:
        gateways = self.world.services.gateways
        before = (await gateways.logo(GATEWAY)).content
        self.expect(before in (an_image("PNG"), an_image("JPEG")), "the logo is neither the old nor the new one")
        if self.told is None:
            await gateways.upload_logo(GATEWAY, an_image("JPEG"), by=AN_ADMIN)
        self.expect((await gateways.logo(GATEWAY)).content == an_image("JPEG"), "INV8: the new logo is not there")

    async def quiet(self) -> None:
        for _ in range(ROUNDS):
            await sweep(self.world.services)
            if not left_over(self.world.url):
                return
            self.world.clock.move(DELIVERY_LEASE + SECOND)

    @property
    def told_of_end(self) -> str:
        """How the process ended."""
        return {-9: "died", 0: "went on"}.get(self.ended, "refused")


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def _services(world: World) -> Services:
    providers, logos = providers_of(allow_loopback=True), ObjectLogos(world.folder / "logos")
    return services_over(world.store, SETTINGS, world.clock, providers=providers, logos=logos)


@asynccontextmanager
async def a_scene(
    url: str, folder: Path, label: Label, kind: CrashKind, previous: Installed | None = None
) -> AsyncIterator[Scene]:
    """On an empty database; `folder` lies beside the server's state."""
    async with world_on(url, folder) as world, a_receiver() as merchant:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER
        world.clock.set(long_ago())
        world.services = _services(world)
        async with world.store.begin() as tx:
            await tx.api_keys.add(a_key())
            for environment in Environment:
                await tx.endpoints.remove(f"whe_{environment.value.lower()}", world.clock.now())
        wanted = CreateWebhook(url=merchant.origin, environment=Environment.SANDBOX)
        await world.services.webhooks.create("biz_1", wanted, by=AN_ADMIN)
        yield Scene(world, merchant, label, kind, Buyer([], {}, "biz_1", world.fakes.paystack), previous)


async def tried(made: Databases, label: Label, kind: CrashKind, previous: Installed | None = None) -> Scene:
    """With what does not hold."""
    with made.fresh() as (url, folder):
        async with a_scene(url, folder, label, kind, previous) as scene:
            await scene.crash(await scene.prepare())
            await scene.recover()
            scene.wrong += wrongs(url, [scene.buyer], {"provider_a": scene.book}, scene.merchant, is_quiet=True)
    return scene


def all_tried(tally: RunSummary, only: str, previous: Installed | None = None) -> None:
    with databases("crashes") as made:
        for label in LABELS:
            for kind in CrashKind:
                if only in (label.name.lower(), label.verb, kind.name.lower(), ""):
                    began = time.monotonic()
                    scene = asyncio.run(tried(made, label, kind, previous))
                    how = f"{scene.told_of_end}, {time.monotonic() - began:.1f} s"
                    tally.line(f"{label.name}  {kind.value:<20} {how:<16} {label.at}", scene.wrong)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab crashes", description=__doc__)
    parser.add_argument("--only", default="", help="a label, a verb or a kind of crash: W3, process, postgres")
    only = parser.parse_args(arguments).only.lower()
    tally = RunSummary("crashes", arguments)
    all_tried(tally, only)
    return tally.end(whole=not only)
