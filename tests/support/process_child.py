"""One use case in a process of its own, so that it can be killed: URL, folder, time, step to die at, what to do."""

import asyncio
import sys
from datetime import datetime
from pathlib import Path

from payagg_testing.clocks import ManualClock

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.providers import PROVIDERS
from payagg.application.schemas.payments import ProcessPayment
from tests.support.provider_world import assembled


async def main(url: str, folder: str, now: str, label: str, verb: str, *words: str) -> None:
    store = PostgresStore(url, pool_size=2, pgbouncer=False)
    services = assembled(store, ManualClock(datetime.fromisoformat(now)), Path(folder), label=label)
    if verb == "process":
        reference, slug = words
        await services.checkout.process(reference, ProcessPayment(gateway_slug=slug))
    elif verb == "reconcile":
        await services.reconciler.run_once()
    elif verb == "receive":
        body, header, signature = words
        route = PROVIDERS[0].routes[0]
        await services.provider_events.receive(route, body.encode(), {header: signature})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
