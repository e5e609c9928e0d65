"""A worker that only delivers, as a process of its own: `python -m tests.support.delivering URL [STEP TO DIE AT]`."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta

from lab.kit.around import around
from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.application.webhooks.dispatcher import Dispatcher
from tests.support.assembly import KEYS


class MortalSender(HttpSender):
    """The product's sender, with a step to die at between a merchant's answer and its record."""

    def __init__(self, step: Callable[[str], None]) -> None:
        super().__init__(allow_loopback=True)
        self._step = step

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> DeliveryAttemptResult:
        result = await super().send(url, headers, body, owner="")
        self._step("sent")
        return result


async def deliver(database_url: str, label: str = "") -> None:
    def step(name: str) -> None:
        if name == label:
            os.kill(os.getpid(), signal.SIGKILL)

    for claim in ("claim", "claim_poison_message"):
        around(PostgresDeliveryQueue, claim, after=lambda found: step("claimed") if found else None)
    around(PostgresDeliveryQueue, "finish", after=lambda _: step("recorded"))
    store = PostgresStore(database_url, pool_size=3, pgbouncer=False)
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
