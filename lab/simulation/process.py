"""A process of the product: every use case over the ports of one life, and the worker's loops beside the requests."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab.simulation.world import Killed, SimulatedWorld
from payagg.application import worker
from payagg.application.checkout import Checkout
from payagg.application.dispatcher import Dispatcher
from payagg.application.future_instants import FutureInstants
from payagg.application.gateway_credentials import GatewayCredentials
from payagg.application.gateway_settling import GatewaySettling
from payagg.application.gateways import Gateways
from payagg.application.partitions import Partitions
from payagg.application.payment_options import PaymentOptions
from payagg.application.payments import Payments
from payagg.application.ports import Clock, Conflict, Entropy, Provider, Sender, Unavailable
from payagg.application.provider_calls import ProviderCalls
from payagg.application.provider_events import ProviderEvents
from payagg.application.reconciliation import Reconciler
from payagg.application.reconciliation_runs import ReconciliationRuns
from payagg.application.refused_events import RefusedEvents
from payagg.application.retention import Retention
from payagg.application.settlement import Settlement
from payagg.application.store import Store
from payagg.application.verification import Verification
from payagg.domain.gateway import DRAIN_WINDOW, SANDBOX_SLUG
from payagg.domain.payment import CHECKOUT_TTL
from tests.support.state_machine.scripted import LabelVault, NoFiles

BASE_URL = "https://pay.example"
PACE = 20.0  # sweeps come round so much less often than in the product, as a history lives through days
POLL_SECONDS = 6.0
DEATH_SECONDS = 0.2, 40.0  # until a killed process is started again


@dataclass(frozen=True)
class ProcessServices:
    """The use cases of one life of a process, and its clock."""

    clock: Clock
    payments: Payments
    checkout: Checkout
    verification: Verification
    settlement: Settlement
    gateways: Gateways
    gateway_settling: GatewaySettling
    provider_events: ProviderEvents
    refused_events: RefusedEvents
    reconciler: Reconciler
    reconciliation_runs: ReconciliationRuns
    dispatcher: Dispatcher
    retention: Retention
    partitions: Partitions
    future_instants: FutureInstants
    gateway_copies: None = None  # one installation


def assembled(
    store: Store, clock: Clock, entropy: Entropy, providers: dict[str, Provider], sender: Sender
) -> ProcessServices:
    """Fresh use cases: nothing that an earlier life remembered is in them."""
    vault, files = LabelVault(), NoFiles()
    settlement = Settlement(store, clock, entropy)
    options = PaymentOptions(store, clock, vault, providers)
    calls = ProviderCalls(store, clock, entropy, BASE_URL)
    refused = RefusedEvents(store, clock)
    reserved = frozenset({SANDBOX_SLUG})
    return ProcessServices(
        clock=clock,
        payments=Payments(store, clock, entropy, settlement, options, BASE_URL, CHECKOUT_TTL),
        checkout=Checkout(store, clock, entropy, options, calls, settlement),
        verification=Verification(store, clock, options, calls, settlement),
        settlement=settlement,
        gateways=Gateways(store, clock, entropy, vault, files, files, providers, reserved, DRAIN_WINDOW),
        gateway_settling=GatewaySettling(store, clock, entropy, GatewayCredentials(vault, providers)),
        provider_events=ProviderEvents(store, clock, entropy, options, settlement, refused),
        refused_events=refused,
        reconciler=Reconciler(store, clock, entropy, options, calls, settlement),
        reconciliation_runs=ReconciliationRuns(store, clock, entropy, options, settlement, {}),
        dispatcher=Dispatcher(store, clock, entropy, vault, sender, poll_seconds=POLL_SECONDS),
        retention=Retention(store, clock, entropy),
        partitions=Partitions(store, clock, "PAY"),
        future_instants=FutureInstants(store, clock),
    )


class Life:
    """A process from its start to its end. Once it is over every port raises Killed: what unwinds can do nothing."""

    def __init__(self, world: SimulatedWorld, name: str, over: Callable[["Life"], None]) -> None:
        self.world, self.name = world, name
        self.is_alive = self.serves = True
        self.stop = asyncio.Event()
        self.services: ProcessServices
        self.working: asyncio.Task[None]
        self._over = over
        self._tasks: list[asyncio.Task[Any]] = []
        self._calls = 0

    def own(self, task: "asyncio.Task[Any]") -> None:
        if len(self._tasks) > 100:
            self._tasks = [each for each in self._tasks if not each.done()]
        self._tasks.append(task)

    def point(self, where: str) -> None:
        """A place where the process may die; raises Killed there, and ever after."""
        if self.is_alive and self.world.chance.happens(self.world.weather.crash):
            self.kill(where)
        if not self.is_alive:
            raise Killed

    @contextmanager
    def calling(self) -> Iterator[None]:
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    def kill(self, where: str) -> None:
        """Ends it at once, with everything that it remembers."""
        self.world.tell(self.name, f"is killed {where}")
        self.world.sometimes[f"a process is killed {where}"] += 1
        if self._calls:
            self.world.sometimes["a process is killed in mid-call"] += 1
        self.end()
        self._over(self)

    async def work(self) -> None:
        try:
            await worker.run(self.services, self.stop, PACE)
        except (Unavailable, Conflict):
            return  # the product's process runs it anew; told to stop, it is over
        except Exception as error:  # noqa: BLE001 - told
            self.world.fail("INV0", f"the worker of {self.name} ended with {error!r}")

    async def leave(self) -> None:
        """Stops as a deployment stops it: no new requests, the worker winds down, what is under way gets some time."""
        self.serves = False
        self.stop.set()
        await asyncio.wait({self.working}, timeout=40)
        await asyncio.sleep(20)
        if self.is_alive:
            self.world.tell(self.name, "has stopped")
            self.end()

    def end(self) -> None:
        self.is_alive = self.serves = False
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()


class SimulatedProcess:
    """A place where the product runs, one life after the other."""

    def __init__(self, world: SimulatedWorld, name: str, services: Callable[[Life], ProcessServices]) -> None:
        self._world, self._name, self._services = world, name, services
        self._lives = 0
        self._is_over = False
        self.life: Life | None = None
        self.start()

    def start(self) -> None:
        if self.life is not None or self._is_over:
            return
        self._lives += 1
        self.life = Life(self._world, f"{self._name}{self._lives}", self._died)
        self.life.services = self._services(self.life)
        self._world.tell(self.life.name, "starts")
        self.life.working = self._world.spawn(self.life.work(), self.life)

    def kill(self, where: str) -> None:
        if self.life is not None and self.life.serves:
            self.life.kill(where)

    async def restart(self) -> None:
        """A deployment: the life ends in order and the next begins."""
        life = self.life
        if life is None or not life.serves:
            return
        self._world.sometimes["a process is stopped in order"] += 1
        await life.leave()
        if self.life is life:
            self.life = None
            self.start()

    async def retire(self) -> None:
        """The life ends in order, and no other begins."""
        self._is_over = True
        if self.life is not None:
            await self.life.leave()

    def close(self) -> None:
        """Ends the life as it is."""
        self._is_over = True
        if self.life is not None:
            self.life.end()

    def _died(self, life: Life) -> None:
        if self.life is life:
            self.life = None
            self._world.later(self._world.chance.uniform(*DEATH_SECONDS), self.start)
