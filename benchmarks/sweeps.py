"""What the worker's sweeps do, one call after the other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from benchmarks import seed
from benchmarks.deployment import Deployment
from payagg.application.ports.webhooks import DeliveryAttemptResult, DeliveryResult
from payagg.application.webhooks.dispatcher import FAILING_MAX
from payagg.domain.webhook import CONCURRENCY_MAX
from payagg.entrypoints.bootstrap import Services, running
from payagg.entrypoints.settings import read_settings

LEASE = timedelta(minutes=1)
Due = Callable[..., int]  # adds items, of which it gives the number: database, round, past payments, and how many
Work = Callable[[Services], Awaitable[int]]


async def dispatch(services: Services) -> int:
    """The queue's share of sending: claim and record, with nobody called in between."""
    now = services.clock.now()
    claimed = await services.store.queue.claim(now, 400, CONCURRENCY_MAX, FAILING_MAX, LEASE)
    await services.store.queue.finish(
        [DeliveryResult(one, DeliveryAttemptResult(200, None, 5), now, None) for one in claimed]
    )
    return len(claimed)


async def drain(services: Services) -> int:
    """A hundred looks at the gateways, none of which is draining."""
    for _ in range(100):
        await services.gateways.end_drains()
    return 100


SWEEPS: dict[str, tuple[Due, Work]] = {
    "expiry": (seed.expired, lambda services: services.settlement.expire_due()),
    "reconciliation": (seed.to_ask, lambda services: services.reconciler.run_once()),
    "inbox": (seed.inbound, lambda services: services.provider_events.retry_due()),
    "retention": (seed.expired_deliveries, lambda services: services.dispatcher.purge()),
    "dispatch": (seed.due_deliveries, dispatch),
    "drains": (lambda *_: 500, drain),
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
async def services_on(deployment: Deployment) -> AsyncIterator[Services]:
    async with running(read_settings(deployment.environment), deployment.url) as services:
        await services.store.is_current()
        yield services
