"""A worker that only delivers, as a process of its own: `python -m tests.support.delivering URL [STEP TO DIE AT]`."""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.ports.webhooks import ClaimedDelivery, DeliveryAttemptResult, DeliveryResult
from payagg.application.webhooks.dispatcher import Dispatcher
from tests.support.assembly import KEYS
from tests.support.crashes import crash_at


class MortalQueue(PostgresDeliveryQueue):
    """The product's queue, with a step to die at behind a claim and behind a record."""

    def __init__(self, pool: StatementPool, step: Callable[[str], None]) -> None:
        super().__init__(pool)
        self._step = step

    async def claim(
        self, now: datetime, limit: int, per_partition: int, failing: int, lease: timedelta
    ) -> list[ClaimedDelivery]:
        claimed = await super().claim(now, limit, per_partition, failing, lease)
        if claimed:
            self._step("claimed")
        return claimed

    async def claim_poison_message(self, now: datetime, lease: timedelta) -> ClaimedDelivery | None:
        claimed = await super().claim_poison_message(now, lease)
        if claimed is not None:
            self._step("claimed")
        return claimed

    async def finish(self, results: Sequence[DeliveryResult]) -> None:
        await super().finish(results)
        self._step("recorded")


class MortalSender(HttpSender):
    """The product's sender, with steps to die at between a merchant's answer and its record: any, or one whose
    address ends so."""

    def __init__(self, step: Callable[[str], None]) -> None:
        super().__init__(allow_loopback=True)
        self._step = step

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> DeliveryAttemptResult:
        result = await super().send(url, headers, body, owner="")
        self._step("sent")
        self._step(url.rpartition("/")[2])
        return result


class MortalStore(PostgresStore):
    """The product's store around a MortalQueue."""

    def __init__(self, database_url: str, step: Callable[[str], None]) -> None:
        super().__init__(database_url, pool_size=3, pgbouncer=False)
        self._queue = MortalQueue(self.pool, step)


async def deliver(database_url: str, label: str = "") -> None:
    step = crash_at(label)
    store = MortalStore(database_url, step)
    sender = MortalSender(step)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    # A short lease, so that what a killed worker held is taken up soon.
    dispatcher = Dispatcher(
        store, SystemClock(), SystemEntropy("PAY"), AesVault(KEYS), sender, lease=timedelta(seconds=2)
    )
    await dispatcher.run(stop)
    await sender.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(deliver(*sys.argv[1:]))
