"""What surrounds each crash: how it comes to it, what its callers do afterwards, and what must hold in the end."""

import asyncio
import hashlib
import hmac
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psycopg
from payagg_testing.builders import AN_ADMIN, a_business, a_key

from lab.crashes.child import AMOUNT, GATEWAY, KEY, REACHED
from lab.crashes.labels import CrashKind, Label
from lab.kit.judgement import left_over, sweep, wrongs_of, wrongs_of_everything
from payagg.adapters.logos import ObjectLogos
from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.system import SystemClock
from payagg.application.payments.provider_events import FIRST_RETRY
from payagg.application.payments.status_checks import HOLD
from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.application.schemas.webhooks import CreateWebhook
from payagg.application.webhooks.dispatcher import LEASE as DELIVERY_LEASE
from payagg.domain.attempt import ASK_AFTER, LEASE, VERIFY_EVERY, AttemptState
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.assembly import SETTINGS, services_over
from tests.support.images import an_image
from tests.support.provider_rigs import SECRET_KEYS
from tests.support.provider_world import World, world_on
from tests.support.receivers import Receiver, a_receiver

PATIENCE = 60.0  # seconds for Postgres to be back; a bound, never an expectation
SECOND = timedelta(seconds=1)
SANDBOX = Environment.SANDBOX
ROUNDS = 20  # of the worker, until nothing is due


@dataclass
class Scene:
    """One business, one payment and one crash. `told` is what the caller heard of the process, None for nothing."""

    world: World
    merchant: Receiver
    label: Label
    kind: CrashKind
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
        payment = self.payment = await (world.payment() if verb == "process" else world.handed_over())
        if verb == "process":
            return [payment.reference, "provider_a"]
        world.fakes.paystack.pay(payment.reference)
        if verb == "receive":
            return self.event()
        if verb == "reconcile":
            world.clock.move(ASK_AFTER[0] * 2)
        if verb == "deliver":
            await world.services.verification.verify(payment.reference)
        return [payment.reference]

    def event(self) -> list[str]:
        assert self.payment is not None
        charge = self.world.fakes.paystack.book.charges[self.payment.reference]
        body = self.world.fakes.paystack.event(charge).body
        signature = hmac.new(SECRET_KEYS["test"].encode(), body, hashlib.sha512).hexdigest()
        return [body.decode(), "x-provider_a-signature", signature]

    async def crash(self, words: list[str]) -> None:
        world = self.world
        arguments = [world.url, str(world.folder), world.clock.now().isoformat(), self.label.step, self.kind.name]
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lab.crashes.child", *arguments, self.label.verb, *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        said, _ = await child.communicate()
        self.ended = child.returncode or 0
        self.told = said.decode().strip() if self.ended == 0 else None
        self.expect((world.folder / REACHED).exists(), "the step was never reached")
        self.expect((self.ended == -9) is (self.kind is CrashKind.PROCESS), f"the process ended with {self.ended}")
        async with asyncio.timeout(PATIENCE):
            while not _answers(world.url):  # noqa: ASYNC110 - a server elsewhere sets no event here
                await asyncio.sleep(0.1)

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
        found = await self.world.store.find_payment(again[0].payment.reference)
        self.expect(found is not None, "INV8: what was acknowledged is not there")
        self.payment = found
        await services.payments.simulate(again[0].payment.reference, "SUCCESS", "biz_1", by=AN_ADMIN)

    async def _after_process(self) -> None:
        world, payment = self.world, self.payment
        assert payment is not None
        world.clock.move(LEASE + SECOND)
        processed = await world.process(payment)
        self.expect(self.told in (None, processed.checkout_url), "INV8: the payer was sent somewhere else")
        [handed] = [one for one in await world.attempts(payment) if one.state is AttemptState.HANDED_OFF]
        world.fakes.paystack.pay(handed.provider_reference)
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

    async def judge(self) -> None:
        self.wrong += wrongs_of_everything(self.world.url)
        if self.payment is not None:
            book, is_provided = self.world.fakes.paystack.book, self.label.verb != "initiate"
            self.wrong += await wrongs_of(self.world, self.merchant, book, self.payment, is_provided=is_provided)


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


@asynccontextmanager
async def a_scene(url: str, folder: Path, label: Label, kind: CrashKind) -> AsyncIterator[Scene]:
    """On an empty database; `folder` lies beside the server's state."""
    async with world_on(url, folder) as world, a_receiver() as merchant:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER
        # The doctor reads the database's clock, and the scenes move this one on.
        world.clock.set(SystemClock().now() - timedelta(hours=12))
        world.services = services_over(
            world.store,
            SETTINGS,
            world.clock,
            providers=providers_of(allow_loopback=True),
            logos=ObjectLogos(folder / "logos"),
        )
        async with world.store.begin() as tx:
            await tx.api_keys.add(a_key())
            for environment in Environment:
                await tx.endpoints.remove(f"whe_{environment.value.lower()}", world.clock.now())
        wanted = CreateWebhook(url=merchant.origin, environment=SANDBOX)
        await world.services.webhooks.create("biz_1", wanted, by=AN_ADMIN)
        yield Scene(world, merchant, label, kind)
