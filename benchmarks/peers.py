"""Initiations and reads a second beside pgbench, which sends the same rows and statements; deliveries a second; the
memory of a process and the time that it takes to start."""

import json
import time
from argparse import Namespace
from contextlib import ExitStack
from functools import partial
from itertools import count
from statistics import median

from benchmarks import calls, seed
from benchmarks.deployment import Deployment
from benchmarks.figures import Alternation, memory_mib, pgbench
from benchmarks.load import exchanges, rate
from lab.kit.processes import PAYAGG
from tests.support.ports import free_port

CONNECTIONS = 64
PAST = 10_000


def measure(server: str, chosen: Namespace) -> str:
    seconds, keys, numbers = chosen.seconds, {"keys": seed.BUSINESSES}, count()
    rounds = Alternation(chosen.rounds)
    initiate = exchanges(lambda: calls.initiate(seed.owner(next(numbers))), 201)
    read = exchanges(lambda: calls.read(*seed.past(next(numbers), PAST)))
    with ExitStack() as stack:
        own = Deployment(stack, "peers", server)
        seed.payments(own.url, 1, PAST)
        service = own.serve()
        for name, act, connections, script, variables in (
            ("initiate", initiate, CONNECTIONS, "initiate.sql", keys),
            ("read", read, CONNECTIONS, "read.sql", keys | {"payments": PAST}),
            ("initiate, one connection", initiate, 1, "initiate.sql", keys),
        ):
            ours = partial(rate, own.port, connections, seconds, act)
            rounds.add(
                name, {"payagg": ours, "limit": partial(pgbench, own.url, script, connections, seconds, **variables)}
            )
        while next(numbers) < 200_000:
            rate(own.port, CONNECTIONS, 10, initiate)
        others = {"MiB of a server process": memory_mib(service), "after so many requests": next(numbers)}
        others["seconds from start to ready"] = median(_start(own) for _ in range(chosen.rounds))
        others |= _delivered(own, 4_000 * seconds)
    return f"{rounds.table()}\n\n{json.dumps(others)}"


def _start(deployment: Deployment) -> float:
    begun, port = time.monotonic(), free_port()
    deployment.start("another server", *PAYAGG, "serve", "--no-worker", "--port", str(port), port=port)
    took = time.monotonic() - begun
    deployment.processes.stop("another server")
    return took


def _delivered(own: Deployment, number: int) -> dict[str, float]:
    """Signed webhooks a second from one worker process to a bare receiver, nothing else running."""
    own.receive()
    seed.due_deliveries(own.url, number)
    worker = own.worker()
    own.wait_for(1)
    start, begun = own.received(), time.monotonic()
    own.wait_for(number - 1_000)  # without the last ones, of which there are too few at once
    rate = (own.received() - start) / (time.monotonic() - begun)
    return {"webhooks a second": rate, "MiB of a worker": memory_mib(worker)}
