"""Whole journeys a second, from initiate to the webhook received, 64 at a time: of one server and one worker process,
and of pgbench sending what a journey asks of the database. Latencies are of `process`, of pgbench's a
whole journey's. With them the CPU of a journey, which can be compared where others use the machine too."""

import sys
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from statistics import median

from benchmarks import calls, seed
from benchmarks.deployment import Deployment
from benchmarks.figures import Alternation, Cost, PostgresCpu, Round, cpu_seconds, pgbench
from benchmarks.load import Connection, rate

AT_ONCE = 64


def measure(server: str, chosen: Namespace) -> str:
    rounds, numbers, ended = Alternation(chosen.rounds), count(), 0
    costs: list[Cost] = []
    with ExitStack() as stack:
        own = Deployment(stack, "journey", server)
        own.receive()
        server_process = own.serve()
        own.configure_provider()
        worker, database = own.worker(), PostgresCpu(own.url)
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
            database.start()
            begun = cpu_seconds(server_process) + cpu_seconds(worker)
            found = rate(own.port, AT_ONCE, chosen.seconds, act)
            received = own.received() - before  # those that came later count for nobody
            print(f"  {ended - first} journeys, {received} webhooks received", file=sys.stderr, flush=True)
            own.wait_for(ended)
            used = cpu_seconds(server_process) + cpu_seconds(worker) - begun
            costs.append(Cost(*(1000 * one / (ended - first) for one in (used, database.stop()))))
            return replace(found, rate=found.rate * min(1.0, received / (ended - first)))

        def least() -> Round:
            return pgbench(limit.url, "initiate.sql journey.sql", AT_ONCE, chosen.seconds, keys=seed.BUSINESSES)

        rounds.add("journey", {"payagg": journeys, "limit": least})
    cost = Cost(*(median(each) for each in zip(*((one.server, one.postgres) for one in costs[1:]), strict=True)))
    told = f"ms of CPU of a journey: {cost.server:.2f} of server and worker, {cost.postgres:.2f} of Postgres"
    return f"{rounds.table()}\n\n{told}"
