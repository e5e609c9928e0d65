"""A worker that only delivers, as a process of its own: `python -m tests.support.delivering URL`."""

import asyncio
import signal
import sys
from datetime import timedelta

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.adapters.system import SystemClock, SystemEntropy
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.dispatcher import Dispatcher
from tests.support.outbox_rows import KEYS


async def deliver(database_url: str) -> None:
    store = PostgresStore(database_url, pool_size=3, pgbouncer=False)
    sender = HttpSender(allow_loopback=True)
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
    asyncio.run(deliver(sys.argv[1]))
