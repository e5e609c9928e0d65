"""A process of the product: every use case over the ports of one life, the worker's loops beside the requests, and the
store as that life reaches it: slowly, with transactions that are rolled back or whose end nobody tells, and not at
all once dead."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from lab.simulation.world import Killed, SimulatedWorld
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.store import Transaction
from payagg.application.ports.webhooks import ClaimedDelivery
from payagg.domain.attempt import AttemptState
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.process import worker

PACE = 20.0  # sweeps come round so much less often than in the product, as a history lives through days
DEATH_SECONDS = 0.2, 40.0  # until a killed process is started again


class Life:
    """A process from its start to its end. Once it is over every port raises Killed: what unwinds can do nothing."""

    def __init__(self, world: SimulatedWorld, name: str, over: Callable[["Life"], None]) -> None:
        self.world, self.name = world, name
        self.is_alive = self.serves = True
        self.stop = asyncio.Event()
        self.services: Services
        self.working: asyncio.Task[None]
        self._over = over
        self.tokens: set[str] = set()  # of the claims that it made
        self._tasks: list[asyncio.Task[Any]] = []
        self._calls = 0

    def own(self, task: "asyncio.Task[Any]") -> None:
        if len(self._tasks) > 100:
            self._tasks = [each for each in self._tasks if not each.done()]
        self._tasks.append(task)

    def point(self, where: str) -> None:
        """A place where the process may die; raises Killed there, and ever after."""
        if self.is_alive and self.world.chance.happens(self.world.faults.crash):
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
        claims = [a for a in self.world.store.state.attempts.values() if a.token in self.tokens]
        if any(claim.state is AttemptState.CLAIMED for claim in claims):
            self.world.sometimes["a process is killed between claim and hand-off"] += 1
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

    def __init__(self, world: SimulatedWorld, name: str, services: Callable[[Life], Services]) -> None:
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


R = TypeVar("R")
FROZEN_SECONDS = 21.0, 60.0  # longer than a claim's lease; the upper end also than a delivery's


class ReachedStore:
    """A Store. A crash within a transaction leaves what one before its COMMIT leaves, so that is where it is drawn."""

    def __init__(self, life: Life, committed: Callable[[Life], None]) -> None:
        self._life, self._world = life, life.world
        self._committed = committed
        self.queue = ReachedQueue(self)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Transaction]:
        await self._reach()
        async with self._world.store.begin() as tx:
            yield tx
            self._life.point("before COMMIT")
            if self._world.chance.happens(self._world.faults.conflict):
                self._world.sometimes["a transaction is rolled back and done again"] += 1
                raise Conflict("drawn")
        await self._after_commit()

    async def _reach(self) -> None:
        self._life.point("before a transaction")
        world, chance = self._world, self._world.chance
        if chance.happens(world.faults.freeze):
            world.tell(self._life.name, "freezes")
            world.sometimes["a process freezes"] += 1
            await asyncio.sleep(chance.uniform(*FROZEN_SECONDS))
        else:
            await asyncio.sleep(chance.random() * 0.004 if chance.happens(0.3) else 0)
        self._life.point("before a transaction")
        if world.loop.time() < world.down_until:
            raise Unavailable("the database is down")

    async def _after_commit(self) -> None:
        self._committed(self._life)
        self._life.point("after COMMIT")
        if self._world.chance.happens(self._world.faults.unknown_commit):
            self._world.sometimes["a COMMIT has no answer"] += 1
            self._world.tell(self._life.name, "its COMMIT has no answer")
            raise Unavailable("the connection was lost at COMMIT")

    def reached(self, work: Callable[..., Awaitable[R]]) -> Callable[..., Awaitable[R]]:
        """A call of the store that is a transaction by itself."""

        async def call(*given: Any, **named: Any) -> R:
            await self._reach()
            result = await work(*given, **named)
            await self._after_commit()
            return result

        return call

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Every other method of a Store."""
        return self.reached(getattr(self._world.store, name))

    async def is_current(self) -> bool:
        return True


class ReachedQueue:
    """The outbox's sending side, reached the same way."""

    def __init__(self, store: ReachedStore) -> None:
        self._store, self._world, self._queue = store, store._world, store._world.store.queue

    async def claim(self, *given: Any) -> list[ClaimedDelivery]:
        claimed = await self._store.reached(self._queue.claim)(*given)
        for one in claimed:
            self._world.sometimes["a delivery's lease runs out"] += one.is_lease_expired
            self._world.tell("outbox", f"try {one.delivery.attempts} of {one.delivery.event_type} to {one.url}")
        return claimed

    async def claim_poison_message(self, *given: Any) -> ClaimedDelivery | None:
        claimed = await self._store.reached(self._queue.claim_poison_message)(*given)
        if claimed is not None:
            self._world.sometimes["a delivery that may kill its workers is sent alone"] += 1
            self._world.tell("outbox", f"alone: try {claimed.delivery.attempts} of {claimed.delivery.event_type}")
        return claimed

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return self._store.reached(getattr(self._queue, name))
