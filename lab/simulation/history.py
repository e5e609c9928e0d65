"""One history: some payments through some processes, faults for a while, then peace until nothing is left to do."""

import asyncio
import json
from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from payagg_testing.builders import a_business, a_gateway, an_endpoint
from payagg_testing.clocks import START
from structlog.testing import capture_logs

from lab.simulation.clients import ShopReceiver, SimulatedSender
from lab.simulation.invariants import Invariants
from lab.simulation.ledger import Order
from lab.simulation.people import Merchant, Operators, Payer
from lab.simulation.process import Life, ReachedStore, SimulatedProcess
from lab.simulation.provider_sim import PAGE, SDK, Bank, SimulatorClient
from lab.simulation.world import InvariantBroken, NothingLeft, SimulatedWorld
from payagg.adapters.providers.sandbox import Simulator
from payagg.application.ports.providers import Provider
from payagg.application.ports.store import Store
from payagg.domain.delivery import DeliveryStatus
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.values import Environment
from payagg.domain.webhook import secret_context
from payagg.entrypoints.bootstrap import Services
from tests.support.assembly import services_over
from tests.support.state_machine.scripted import ACCOUNT, LabelVault

STEP_SECONDS = 3.0
POLL_SECONDS = 6.0  # of the dispatcher
STEPS_MAX = 4_000  # several times what any history needs to come to rest
# What the product logs as an error and what may be its reason: the database's faults and deaths are ours.
EXPECTED_ERRORS = ("Unavailable", "Conflict", "Killed")


@dataclass(frozen=True)
class History:
    """What came of one seed. `broken` is the invariant that does not hold, and what was found."""

    seed: int
    digest: str
    sometimes: Counter[str]
    lines: list[tuple[datetime, str, str]]
    broken: InvariantBroken | None

    def timeline(self) -> str:
        """The whole history, a line for each thing that happened."""
        told = [f"{_since(at):>12}  {who:<14} {what}" for at, who, what in self.lines]
        return "\n".join([f"seed {self.seed}, trace {self.digest}", *told, f"broken: {self.broken or 'nothing'}"])


def simulate(seed: int) -> History:
    """Lives through one history. Equal seeds give equal ones, in every process."""
    world = SimulatedWorld(seed)
    with capture_logs() as logs:
        director = Director(world, logs)
        try:
            world.loop.run_until_complete(director.main)
        except InvariantBroken:
            pass
        except NothingLeft:
            world.fail("INV7", "everybody waits, and nobody will come")
        history = History(seed, world.digest(), world.sometimes.copy(), list(world.lines), world.broken)
        world.is_over = True
        world.loop.run_until_complete(director.close())
        world.loop.close()
    return history


class Director:
    """Sets the scene of a history and brings it to its end."""

    def __init__(self, world: SimulatedWorld, logs: list[MutableMapping[str, Any]]) -> None:
        self.world, self.chance, self.logs = world, world.chance, logs
        self.bank = Bank(world)
        self.invariants = Invariants(world)
        self.receivers: dict[str, ShopReceiver] = {}
        self.processes: list[SimulatedProcess] = []
        self.logged = 0
        self.main = world.spawn(self._live())
        self.peace_at = START + timedelta(seconds=self.chance.choice((60.0, 900.0, 5400.0, 14400.0)))

    async def _live(self) -> None:
        try:
            await self._play()
        finally:
            self.world.is_over = True

    async def _play(self) -> None:
        world = self.world
        self._build()
        for name in "ABC"[: self.chance.choice((1, 2, 2, 3))]:
            self.processes.append(SimulatedProcess(world, name, self._services))
        world.processes.extend(self.processes)
        self._send_people()
        if world.faults.crash_anywhere:
            world.killer = self._kill_anywhere
        for _ in range(STEPS_MAX):
            await self._step()
            if not (world.busy or world.people or self.invariants.peace is None or self._dues()):
                self.invariants.at_the_end()
                return
        world.fail("INV7", f"no rest after {STEPS_MAX} steps: {sorted(self._dues())[:3]}")

    async def _step(self) -> None:
        """Lets everybody work for moments; where nobody does, hours may pass until something is due."""
        world = self.world
        await world.wait(STEP_SECONDS)
        self._read_logs()
        self._see_people_off()
        if self.invariants.peace is None and world.clock.now() >= self.peace_at:
            self._make_peace()
        if not world.busy:
            dues = self._dues()
            if self.invariants.peace is None:
                dues.append(self.peace_at)
            ahead = (min(dues) - world.clock.now()).total_seconds() if dues else 0.0
            if ahead > 0:
                world.clock.skipped += ahead
        world.ring()

    def _dues(self) -> list[datetime]:
        """When the product, or somebody who waits, has something to do."""
        state = self.world.store.state
        dues = [self.world.next_alarm()]
        for key, attempt in state.attempts.items():
            hold = state.holds.get(key)
            dues.append(max(attempt.next_ask_at, hold) if attempt.next_ask_at and hold else attempt.next_ask_at)
        for delivery in state.deliveries.values():
            if delivery.status is DeliveryStatus.PENDING:
                dues += [delivery.lease_until or delivery.next_attempt_at]
        dues += [event.next_attempt_at for event in state.inbox.values()]
        dues += [payment.expires_at for payment in state.payments.values() if payment.status.value == "INITIATED"]
        dues += [gateway.drain_ends_at for gateway in state.gateways.values()]
        return [due for due in dues if due is not None]

    def _make_peace(self) -> None:
        """Nothing fails from now on, and one process goes on alone."""
        self.invariants.peace = self.world.clock.now()
        self.world.make_peace()
        for process in self.processes[1:]:
            self.world.send_out(process.retire())

    def _read_logs(self) -> None:
        """What the product logged: an error that is not the database's fault is a defect."""
        for entry in self.logs[self.logged :]:
            kind, *_ = entry.get("trace", [None])
            if entry["log_level"] == "error" and kind not in EXPECTED_ERRORS:
                self.world.fail("INV0", f"the product logged {entry}")
        self.logged = len(self.logs)

    def _see_people_off(self) -> None:
        """Forgets whoever has gone home; raises what went wrong with one of them: a fault of the simulation."""
        gone = [task for task in self.world.people if task.done()]
        self.world.people = [task for task in self.world.people if not task.done()]
        for task in gone:
            task.result()

    def _kill_anywhere(self) -> None:
        if self.chance.happens(self.world.faults.crash_anywhere):
            self.chance.choice(self.processes).kill("between two turns")

    def _send_people(self) -> None:
        world, chance = self.world, self.chance
        businesses = list(world.store.state.businesses)
        for number in range(chance.choice((1, 2, 2, 3, 4))):
            environment = chance.choice((Environment.LIVE, Environment.SANDBOX))
            key = f"order-{number}" if chance.happens(0.85) else None
            order = Order(chance.choice(businesses), environment, 10_000 + 1_000 * number, key)
            world.ledger.orders[order.amount] = order
            payer = Payer(world, self.invariants, self.bank, order)
            world.send_out(Merchant(world, self.invariants, order).buy(payer))
        operators = Operators(world, self.bank, self.processes)
        for errand, share in (
            (operators.drain, 0.4),
            (operators.point_at_another_account, 0.15),
            (operators.deploy, 0.15),
            (operators.take_a_provider_away, 0.15),
            (operators.take_the_database_away, 0.15),
            (operators.set_the_clock_back, 0.1),
        ):
            if chance.happens(share):
                world.send_out(errand())

    def _build(self) -> None:
        state = self.world.store.state
        for slug in (PAGE, SDK):
            id = f"gw_{slug}"
            sealed = LabelVault().seal(json.dumps({ACCOUNT: id}).encode(), id)
            state.gateways[id] = a_gateway(slug, id=id, credentials=sealed)
        for number in range(1, self.chance.choice((2, 3))):
            business = a_business(f"biz_{number}")
            state.businesses[business.id] = business
            for environment in Environment:
                for place in range(self.chance.choice((0, 1, 1, 2))):
                    self._open_receiver(business.id, environment, place)

    def _open_receiver(self, business_id: str, environment: Environment, place: int) -> None:
        id = f"whe_{business_id}_{environment.value}_{place}"
        url, key = f"https://{business_id}.example/{environment.value}/{place}", id.encode()
        sealed = LabelVault().seal(key, secret_context(id))
        endpoint = an_endpoint(id, environment, business_id=business_id, url=url, secret=sealed)
        self.world.store.state.endpoints[id] = endpoint
        is_closed = self.chance.happens(0.05)
        self.receivers[url] = ShopReceiver(self.world, url, business_id, environment, key, is_closed)

    def _services(self, life: Life) -> Services:
        """Fresh use cases: nothing that an earlier life cached is in them."""
        providers: dict[str, Provider] = {slug: SimulatorClient(self.bank, life, slug) for slug in (PAGE, SDK)}
        services = services_over(
            cast(Store, ReachedStore(life, self.invariants.on_commit)),
            clock=self.world.clock,
            entropy=self.world.entropy,
            vault=LabelVault(),
            providers=providers | {SANDBOX_SLUG: Simulator()},
            lists={},
            sender=SimulatedSender(life, self.receivers),
        )
        services.dispatcher.poll_seconds = POLL_SECONDS
        return services

    async def close(self) -> None:
        """Ends every task without letting any of them do more."""
        for process in self.processes:
            process.close()
        for task in (self.main, *self.world.people):
            task.cancel()
        for _ in range(20):  # turns of the loop, in which they unwind
            await asyncio.sleep(0)


def _since(at: datetime) -> str:
    """Time since the start, as hours, minutes and seconds."""
    seconds = (at - START).total_seconds()
    return f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02}:{seconds % 60:06.3f}"
