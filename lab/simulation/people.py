"""Those who use the service: merchants' servers, payers with their browsers, administrators. Each remembers what it was
told, and says so when two answers do not go together."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from payagg_testing.builders import AN_ADMIN, an_actor

from lab.simulation.invariants import Invariants
from lab.simulation.ledger import Order
from lab.simulation.process import SimulatedProcess
from lab.simulation.provider_sim import PAGE, SDK, Bank
from lab.simulation.world import Lost, SimulatedWorld
from payagg.application.schemas.checkout import ProcessPayment
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.attempt import HandOffKind
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, GatewayStatus
from payagg.domain.simulator import TEST_CARDS
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from tests.support.state_machine.scripted import ACCOUNT

HOUR = 3600.0
DAY = 24 * HOUR
FINAL = ("SUCCESS", "FAILED", "REVERSED")


class Merchant:
    """A merchant's server: it orders, repeats what was not answered, and now and then what was."""

    def __init__(self, world: SimulatedWorld, invariants: Invariants, order: Order) -> None:
        self.world, self.chance, self.ledger = world, world.chance, world.ledger
        self.invariants, self.order = invariants, order
        self.business = world.store.state.businesses[order.business_id]

    async def buy(self, payer: "Payer") -> None:
        await self.world.wait(self.chance.random() * 20)
        for pause in (0.0, 1.0, 3.0, 10.0, 60.0, 600.0):
            await self.world.wait(pause)
            if await self._initiate():
                break
            if self.order.key is None:
                return  # asking again might make a second payment
        if self.order.reference is None:
            return
        self.world.send_out(payer.visit(self.order.reference))
        while self.order.key is not None and self.chance.happens(0.5):
            await self.world.wait(self.chance.choice((2.0, 30.0, 900.0, 2 * HOUR)))
            await self._initiate()
            await self._read(self.order.reference)
        if self.order.environment is Environment.SANDBOX and self.chance.happens(0.2):
            await self._simulate(self.order.reference)
            await self._read(self.order.reference)

    async def _read(self, reference: str) -> None:
        order, before = self.order, self.ledger.finals.get(reference)
        try:
            told = await self.world.ask(
                "merchant",
                f"read {reference}",
                lambda services: services.payments.read(reference, order.business_id, order.environment),
            )
        except Lost:
            return
        self.invariants.on_read(reference, told.status.value, before)

    async def _initiate(self) -> bool:
        """Whether it was answered with a payment, ever."""
        order = self.order
        command = InitiatePayment(amount=order.amount, idempotency_key=order.key)
        try:
            told = await self.world.ask(
                "merchant",
                f"initiate {order.amount}",
                lambda services: services.payments.initiate(command, self.business, order.environment),
            )
        except Lost:
            return False
        except Refusal as refusal:
            self.invariants.on_refused_order(order, refusal.code)
            return False
        self.invariants.on_order(order, told.payment.reference)
        order.expires_at = told.payment.expires_at
        if not told.created:
            self.world.sometimes["an idempotency key is replayed"] += 1
        return True

    async def _simulate(self, reference: str) -> None:
        await self.world.wait(self.chance.choice((1.0, 20.0, 1200.0)))
        outcome = self.chance.choice(FINAL)
        self.ledger.simulated[reference].add(outcome)
        try:
            told = await self.world.ask(
                "merchant",
                f"simulate {outcome} of {reference}",
                lambda services: services.payments.simulate(reference, outcome, self.order.business_id, by=an_actor()),
            )
        except (Lost, Refusal):
            return
        self.invariants.on_final(reference, told.status.value)


class Payer:
    """A payer at the hosted checkout, perhaps in several tabs, and then at the provider's page."""

    def __init__(self, world: SimulatedWorld, invariants: Invariants, bank: Bank, order: Order) -> None:
        self.world, self.chance, self.ledger = world, world.chance, world.ledger
        self.invariants, self.bank, self.order = invariants, bank, order

    async def visit(self, reference: str) -> None:
        # Some come at the last moment, when the window closes under their call, and some too late.
        wait = self.chance.choice((0.0, 2.0, 8.0, 60.0, 1500.0))
        if self.chance.happens(0.15) and self.order.expires_at is not None:
            wait = (self.order.expires_at - self.world.clock.now()).total_seconds() - 8 + self.chance.random() * 10
        await self.world.wait(wait)
        for _ in range(self.chance.choice((1, 2, 2, 3))):
            self.world.send_out(self._tab(reference))
            await self.world.wait(self.chance.choice((0.0, 0.3, 4.0)))
        while self.chance.happens(0.6):
            await self.world.wait(self.chance.choice((1.0, 4.0, 70.0, 900.0)))
            self.world.send_out(self._verify(reference))  # the one before may be under way

    async def _tab(self, reference: str) -> None:
        options = [PAGE, PAGE, SDK] + [SANDBOX_SLUG] * (self.order.environment is Environment.SANDBOX)
        slug = self.chance.choice(options)
        for pause in (0.0, 1.0, 5.0, 30.0, 120.0, 900.0):
            await self.world.wait(pause)
            if await self._process(reference, slug):
                return
            if self.chance.happens(0.3):
                slug = self.chance.choice(options)

    async def _process(self, reference: str, slug: str) -> bool:
        """Whether there is no reason to come again."""
        card = self.chance.choice(list(TEST_CARDS)) if slug == SANDBOX_SLUG else None
        if card is not None:
            self.ledger.cards[reference].add(TEST_CARDS[card])
        command = ProcessPayment(gateway_slug=slug, card_number=card)
        try:
            told = await self.world.ask(
                "payer",
                f"process {reference} at {slug}",
                lambda services: services.checkout.process(reference, command),
            )
        except Lost:
            return False
        except Refusal as refusal:
            self.invariants.on_refused_payer(reference, refusal.code)
            gateways = self.world.store.state.gateways.values()
            if any(gateway.slug == slug and gateway.status is GatewayStatus.DRAINING for gateway in gateways):
                self.world.sometimes["a payer comes to a gateway that drains"] += 1
            return refusal.code not in (ErrorCode.GATEWAY_NOT_AVAILABLE, ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED)
        self.invariants.on_hand_off(reference, told.checkout_url)
        if told.handoff is not HandOffKind.SIMULATOR:
            self.world.send_out(self._at_the_page(told.checkout_url))
        return True

    async def _at_the_page(self, url: str) -> None:
        chance = self.chance
        await self.world.wait(chance.choice((0.1, 3.0, 30.0, 400.0)))
        charge = self.bank.open(url)
        if chance.happens(0.15):
            return  # a browser that is closed
        if chance.happens(0.4):
            self.bank.decline(charge)
            await self.world.wait(chance.choice((3.0, 90.0, 1.5 * HOUR, 4 * HOUR)))
            if chance.happens(0.4):
                self.bank.give_up(charge)
                await self.world.wait(chance.choice((3.0, 1800.0)))
                if chance.happens(0.6):
                    return
        await self.world.wait(chance.choice((0.0, 1.0, 20.0, 300.0, HOUR, 5 * HOUR, 30 * HOUR)))
        amount = self.order.amount - 50 if chance.happens(0.1) else self.order.amount
        self.bank.pay(charge, amount)
        if chance.happens(0.15):
            await self.world.wait(chance.choice((0.5, 900.0)))
            self.bank.pay_again(charge)
        if chance.happens(0.3):
            await self._is_refunded(charge)
        if chance.happens(0.2):
            await self._disputes(charge)
        if chance.happens(0.1):
            self.bank.turn_odd(charge)
            await self.world.wait(chance.choice((HOUR, 20 * HOUR)))
            self.bank.turn_even(charge)

    async def _is_refunded(self, charge: str) -> None:
        """At once, or in equal parts; soon, or long after the last look at the payment but one."""
        chance = self.chance
        parts, named = chance.choice((1, 1, 2, 4)), chance.happens(0.6)
        for _ in range(chance.choice((1, parts))):
            await self.world.wait(chance.choice((0.5, 40.0, 2 * HOUR, 5 * DAY)))
            self.bank.give_back(charge, parts, named=named)

    async def _disputes(self, charge: str) -> None:
        chance, part = self.chance, self.chance.happens(0.5)
        await self.world.wait(chance.choice((5.0, HOUR, 40 * DAY)))
        self.bank.dispute(charge, "opened", part=part)
        if chance.happens(0.7):
            await self.world.wait(chance.choice((5.0, 2 * DAY)))
            self.bank.dispute(charge, chance.choice(("won", "lost", "accepted")), part=part)

    async def _verify(self, reference: str) -> None:
        before = self.ledger.finals.get(reference)
        try:
            told = await self.world.ask(
                "payer", f"verify {reference}", lambda services: services.verification.verify(reference)
            )
        except (Lost, Refusal):
            return
        self.invariants.on_read(reference, told.status.value, before)


class Operators:
    """Administrators who switch gateways off and on, deployments, and what befalls the machines."""

    def __init__(self, world: SimulatedWorld, bank: Bank, processes: list[SimulatedProcess]) -> None:
        self.world, self.bank, self.chance, self.processes = world, bank, world.chance, processes

    async def drain(self) -> None:
        """Switches a gateway off, and on again before its drain has ended, after that, or not at all."""
        await self.world.wait(self.chance.choice((1.0, 30.0, 600.0)))
        slug = self.chance.choice((PAGE, SDK))
        if not await self._move(slug, "disable"):
            return
        then = self.chance.choice(("enable soon", "enable late", "delete", "nothing"))
        if then == "enable soon":
            await self.world.wait(60.0 + self.chance.random() * 1500)
            await self._move(slug, "enable")
        elif then != "nothing":
            await self.world.wait(timedelta(minutes=31).total_seconds())
            if await self._move(slug, then.partition(" ")[0]) and then == "delete":
                await self._refund_after_the_wipe(slug)

    async def _refund_after_the_wipe(self, slug: str) -> None:
        """Once nothing is asked with a deleted gateway's credentials they are wiped; its events must be proved yet."""
        await self.world.wait(4 * DAY)
        # Its own timer is not awake while days are skipped.
        await self._ask_for(f"sweep {slug}", lambda services: services.gateway_settling.wipe())
        taken = [charge for charge in self.world.ledger.charges.values() if charge.slug == slug and charge.taken]
        for charge in taken[:1]:
            self.bank.give_back(charge.reference, 1, named=True)

    async def point_at_another_account(self) -> None:
        """By mistake, and back again, or for good; while payers are at their pages."""
        await self.world.wait(self.chance.choice((20.0, 400.0, 2 * HOUR)))
        slug = self.chance.choice((PAGE, SDK))
        id, ledger = f"gw_{slug}", self.world.ledger
        other = f"{id} other"
        ledger.moved_away.add(id)
        if await self._set_account(slug, other):
            self.world.sometimes["a gateway is pointed at another account"] += 1
        if self.chance.happens(0.5):
            await self.world.wait(self.chance.choice((600.0, 10 * HOUR)))
            ledger.moved_away.add(other)  # also where no answer comes: it may have been done
            if await self._set_account(slug, id):
                ledger.moved_away.discard(id)
                ledger.back_at[id] = self.world.clock.now()

    async def _set_account(self, slug: str, account: str) -> bool:
        id, command = f"gw_{slug}", UpdateCredentials(credentials={ACCOUNT: account})
        return await self._ask_for(
            f"point {slug} at {account}", lambda services: services.gateways.set_credentials(id, command, by=AN_ADMIN)
        )

    async def _move(self, slug: str, move: str) -> bool:
        return await self._ask_for(
            f"{move} {slug}", lambda services: getattr(services.gateways, move)(f"gw_{slug}", by=AN_ADMIN)
        )

    async def _ask_for(self, what: str, work: Callable[[Services], Coroutine[Any, Any, Any]]) -> bool:
        """Whether it was done, as far as anybody was told."""
        for pause in (0.0, 3.0, 30.0):
            await self.world.wait(pause)
            try:
                await self.world.ask("administrator", what, work)
            except Lost:
                continue
            except Refusal:
                return False
            return True
        return False

    async def deploy(self) -> None:
        await self.world.wait(self.chance.random() * 300)
        for process in self.processes:
            await process.restart()

    async def take_a_provider_away(self) -> None:
        await self.world.wait(self.chance.choice((1.0, 5.0, 600.0)))
        if self.world.is_peace:
            return
        slug = self.chance.choice((PAGE, PAGE, SDK))
        self.world.tell(slug, "cannot be reached")
        self.world.sometimes["a provider is away for a while"] += 1
        self.world.unreachable.add(slug)
        await self.world.wait(self.chance.choice((60.0, 1200.0, 2 * HOUR)))
        self.world.unreachable.discard(slug)

    async def set_the_clock_back(self) -> None:
        """The database's, from which every process takes its time."""
        await self.world.wait(self.chance.choice((2.0, 60.0, 1800.0)))
        if self.world.is_peace:
            return
        self.world.tell("database", "has a clock that is set back")
        self.world.sometimes["the clock goes back"] += 1
        self.world.clock.skipped -= self.chance.choice((0.5, 10.0, 50.0, 900.0))

    async def take_the_database_away(self) -> None:
        await self.world.wait(self.chance.choice((2.0, 40.0, 1800.0)))
        if self.world.is_peace:
            return
        self.world.tell("database", "is down")
        self.world.sometimes["the database is down for a while"] += 1
        self.world.down_until = self.world.loop.time() + self.chance.choice((1.0, 10.0, 60.0))
