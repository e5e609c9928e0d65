"""Whole journeys a second, from initiate to the webhook received, 64 at a time: of one server and one worker process,
and of pgbench sending what a journey asks of the database (`journey.sql`). Latencies are of `process`, of pgbench's a
whole journey's."""

import sys
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import replace
from itertools import count

from benchmarks import calls, seed
from benchmarks.deployment import Deployment
from benchmarks.figures import Alternation, Round, pgbench
from benchmarks.load import Connection, rate

AT_ONCE = 64


def measure(server: str, chosen: Namespace) -> str:
    rounds, numbers, ended = Alternation(chosen.rounds), count(), 0
    with ExitStack() as stack:
        own = Deployment(stack, "journey", server)
        own.receive()
        own.serve()
        own.configure_provider()
        own.worker()
        # The same tables and settings, with nobody on them.
        limit = Deployment(stack, "journey_limit", server)
        limit.receive()

        async def act(connection: Connection) -> float:
            nonlocal ended
            processed = await calls.whole(connection, seed.owner(next(numbers)))
            ended += 1
            return processed.seconds

        def journeys() -> Round:
            before, first = own.received(), ended
            found = rate(own.port, AT_ONCE, chosen.seconds, act)
            received = own.received() - before  # those that came later count for nobody
            print(f"  {ended - first} journeys, {received} webhooks received", file=sys.stderr, flush=True)
            own.wait_for(ended)
            return replace(found, rate=found.rate * min(1.0, received / (ended - first)))

        def least() -> Round:
            return pgbench(limit.url, "journey.sql", AT_ONCE, chosen.seconds, keys=seed.BUSINESSES)

        rounds.add("journey", {"payagg": journeys, "limit": least})
    return rounds.table()
