"""The shared store as one life of a process reaches it: slowly, with transactions that are rolled back or whose end
nobody tells, and not at all once that process is dead."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from payagg.application.ports import Conflict, Unavailable
from payagg.application.repositories import GatewayChoices, RefusedEvent
from payagg.application.store import ClaimedDelivery, DeliveryResult, KeyHolder, Transaction
from payagg.domain.business import Business
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment
from payagg.testing.simulation.process import Life

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

    async def find_key(self, secret_hash: bytes) -> KeyHolder | None:
        return await self.whole(partial(self._world.store.find_key, secret_hash))

    async def touch_key(self, key_id: str, now: datetime) -> None:
        await self.whole(partial(self._world.store.touch_key, key_id, now))

    async def find_payment(self, reference: str, remembered: KeyHolder | None = None) -> Payment | None:
        return await self.whole(partial(self._world.store.find_payment, reference, remembered))

    async def add_payment(self, payment: Payment, remembered: KeyHolder | None = None) -> tuple[Payment, bool]:
        return await self.whole(partial(self._world.store.add_payment, payment, remembered))

    async def find_original(
        self, business_id: str, environment: Environment, key: str, remembered: KeyHolder | None = None
    ) -> Payment | None:
        return await self.whole(partial(self._world.store.find_original, business_id, environment, key, remembered))

    async def find_checkout(self, reference: str) -> tuple[Payment, Business] | None:
        return await self.whole(partial(self._world.store.find_checkout, reference))

    async def find_settling(self, slug: str) -> list[Gateway]:
        return await self.whole(partial(self._world.store.find_settling, slug))

    async def make_partitions(self, prefix: str, now: datetime) -> int:
        return await self.whole(partial(self._world.store.make_partitions, prefix, now))

    async def drop_partitions(self, before: datetime) -> int:
        return await self.whole(partial(self._world.store.drop_partitions, before))

    async def begin_ask(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        return await self.whole(partial(self._world.store.begin_ask, reference, number, now, every))

    async def find_choices(self, business_id: str) -> GatewayChoices:
        return await self.whole(partial(self._world.store.find_choices, business_id))

    async def is_revoked(self, token_id: str | None, subject: str, issued_at: datetime) -> bool:
        return await self.whole(partial(self._world.store.is_revoked, token_id, subject, issued_at))

    async def is_current(self) -> bool:
        return True

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        await self.whole(partial(self._world.store.add_counts, counts))

    async def counts(self) -> dict[tuple[str, ...], int]:
        return await self.whole(self._world.store.counts)

    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        return await self.whole(partial(self._world.store.count_hit, bucket, now, limit))

    async def keep_refused(self, event: RefusedEvent) -> None:
        await self.whole(partial(self._world.store.keep_refused, event))


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

    async def finish(self, results: Sequence[DeliveryResult]) -> None:
        await self._store.whole(partial(self._world.store.queue.finish, results))

    async def release(self, claimed: Sequence[ClaimedDelivery]) -> None:
        await self._store.whole(partial(self._world.store.queue.release, claimed))

    async def oldest_due(self, now: datetime) -> datetime | None:
        return await self._store.whole(partial(self._world.store.queue.oldest_due, now))

    async def due(self, now: datetime, limit: int) -> int:
        return await self._store.whole(partial(self._world.store.queue.due, now, limit))

    async def deactivated(self) -> int:
        return await self._store.whole(self._world.store.queue.deactivated)

    async def purge(self, before: datetime, limit: int) -> int:
        return await self._store.whole(partial(self._world.store.queue.purge, before, limit))
