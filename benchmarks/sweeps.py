"""What the worker's sweeps do, one call after the other; `python -m benchmarks.sweeps NAME NUMBER ...` prints what an
item costs. A program of its own, so that another checkout's code can run it."""

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from benchmarks.cpu import PostgresCpu
from payagg.application.dispatcher import FAILING_MAX
from payagg.application.ports import TryResult
from payagg.application.store import DeliveryResult
from payagg.entrypoints.bootstrap import Services, running
from payagg.entrypoints.process.server import run
from payagg.entrypoints.settings import read_settings

AT_ENDPOINT = 50  # not imported: another checkout may call it otherwise
LEASE = timedelta(minutes=1)
Work = Callable[[Services], Awaitable[int]]


async def expire(services: Services) -> int:
    return await services.settlement.expire_due()


async def reconcile(services: Services) -> int:
    return await services.reconciler.run_once()


async def retry_inbox(services: Services) -> int:
    return await services.provider_events.retry_due()


async def purge(services: Services) -> int:
    return await services.dispatcher.purge()


async def dispatch(services: Services) -> int:
    """The queue's share of sending: claim and record, with nobody called in between."""
    now = services.clock.now()
    claimed = await services.store.queue.claim(now, 400, AT_ENDPOINT, FAILING_MAX, LEASE)
    await services.store.queue.finish([DeliveryResult(one, TryResult(200, None, 5), now, None) for one in claimed])
    return len(claimed)


async def drain(services: Services) -> int:
    """A hundred looks at the gateways, none of which is draining."""
    for _ in range(100):
        await services.gateways.end_drains()
    return 100


WORK: dict[str, Work] = {
    "expiry": expire,
    "reconciliation": reconcile,
    "inbox": retry_inbox,
    "retention": purge,
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


async def main(sweeps: dict[str, int]) -> None:
    url = os.environ["PAYAGG_DATABASE_URL"]
    postgres, costs = PostgresCpu(url), {}
    async with running(read_settings(os.environ), url) as services:
        await services.store.is_current()
        for name, number in sweeps.items():
            postgres.start()
            begun = time.process_time()
            done = await until_done(services, WORK[name], number)
            used = time.process_time() - begun
            costs[name] = {"server_ms": used * 1000 / done, "postgres_ms": postgres.stop() * 1000 / done}
    print(json.dumps(costs))


if __name__ == "__main__":
    run(main({name: int(number) for name, number in zip(sys.argv[1::2], sys.argv[2::2], strict=True)}))
