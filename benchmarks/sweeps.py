"""What the worker's sweeps do, one call after the other, and what an item of each costs."""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from benchmarks.cpu import Cost, PostgresCpu
from payagg.application.ports.webhooks import DeliveryResult, TryResult
from payagg.application.webhooks.dispatcher import FAILING_MAX
from payagg.domain.webhook import CONCURRENCY_MAX
from payagg.entrypoints.bootstrap import Services, running
from payagg.entrypoints.settings import read_settings

LEASE = timedelta(minutes=1)
Work = Callable[[Services], Awaitable[int]]


async def dispatch(services: Services) -> int:
    """The queue's share of sending: claim and record, with nobody called in between."""
    now = services.clock.now()
    claimed = await services.store.queue.claim(now, 400, CONCURRENCY_MAX, FAILING_MAX, LEASE)
    await services.store.queue.finish([DeliveryResult(one, TryResult(200, None, 5), now, None) for one in claimed])
    return len(claimed)


async def drain(services: Services) -> int:
    """A hundred looks at the gateways, none of which is draining."""
    for _ in range(100):
        await services.gateways.end_drains()
    return 100


WORK: dict[str, Work] = {
    "expiry": lambda services: services.settlement.expire_due(),
    "reconciliation": lambda services: services.reconciler.run_once(),
    "inbox": lambda services: services.provider_events.retry_due(),
    "retention": lambda services: services.dispatcher.purge(),
    "dispatch": dispatch,
    "drains": drain,
}


async def until_done(services: Services, work: Work, number: int) -> int:
    """Items done, at least `number`; stops the program when there are fewer."""
    done = 0
    while done < number:
        now = await work(services)
        if not now:
            raise SystemExit(f"{done} of {number} were done")
        done += now
    return done


@asynccontextmanager
async def services_on(url: str, environment: Mapping[str, str]) -> AsyncIterator[Services]:
    async with running(read_settings(os.environ | environment), url) as services:
        await services.store.is_current()
        yield services


async def costs(url: str, environment: Mapping[str, str], sweeps: Mapping[str, int]) -> dict[str, Cost]:
    """What an item costs in each sweep, which is run until so many are done."""
    postgres, found = PostgresCpu(url), {}
    async with services_on(url, environment) as services:
        for name, number in sweeps.items():
            postgres.start()
            begun = time.process_time()
            done = await until_done(services, WORK[name], number)
            used = time.process_time() - begun
            found[f"sweep: {name}"] = Cost(used * 1000 / done, postgres.stop() * 1000 / done)
    return found
