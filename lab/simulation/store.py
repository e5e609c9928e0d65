"""The shared store as one life of a process reaches it: slowly, with transactions that are rolled back or whose end
nobody tells, and not at all once that process is dead."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from lab.simulation.process import Life
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.store import Transaction
from payagg.application.ports.webhooks import ClaimedDelivery

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
            if self._world.chance.happens(self._world.weather.conflict):
                self._world.sometimes["a transaction is rolled back and done again"] += 1
                raise Conflict("drawn")
        await self._after_commit()

    async def whole(self, work: Callable[[], Awaitable[R]]) -> R:
        """A call of the store that is a transaction by itself."""
        await self._reach()
        result = await work()
        await self._after_commit()
        return result

    async def _reach(self) -> None:
        self._life.point("before a transaction")
        world, chance = self._world, self._world.chance
        if chance.happens(world.weather.freeze):
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
        if self._world.chance.happens(self._world.weather.unknown_commit):
            self._world.sometimes["a COMMIT has no answer"] += 1
            self._world.tell(self._life.name, "its COMMIT has no answer")
            raise Unavailable("the connection was lost at COMMIT")

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Every other method of a Store."""
        work = getattr(self._world.store, name)
        return lambda *given, **named: self.whole(partial(work, *given, **named))

    async def is_current(self) -> bool:
        return True


class ReachedQueue:
    """The outbox's sending side, reached the same way."""

    def __init__(self, store: ReachedStore) -> None:
        self._store = store
        self._world = store._world

    async def claim(
        self, now: datetime, limit: int, per_partition: int, failing: int, lease: timedelta
    ) -> list[ClaimedDelivery]:
        queue = self._world.store.queue
        claimed = await self._store.whole(partial(queue.claim, now, limit, per_partition, failing, lease))
        for one in claimed:
            if one.is_lease_expired:
                self._world.sometimes["a delivery's lease runs out"] += 1
            self._world.tell("outbox", f"try {one.delivery.attempts} of {one.delivery.event_type} to {one.url}")
        return claimed

    async def claim_suspect(self, now: datetime, lease: timedelta) -> ClaimedDelivery | None:
        claimed = await self._store.whole(partial(self._world.store.queue.claim_suspect, now, lease))
        if claimed is not None:
            self._world.sometimes["a delivery that may kill its workers is sent alone"] += 1
            self._world.tell("outbox", f"alone: try {claimed.delivery.attempts} of {claimed.delivery.event_type}")
        return claimed

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        work = getattr(self._world.store.queue, name)
        return lambda *given, **named: self._store.whole(partial(work, *given, **named))
