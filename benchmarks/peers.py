"""Initiations and reads a second beside pgbench, which sends the same rows and statements, and beside the plain build;
deliveries a second; the memory of a process and the time that it takes to start."""

import json
import time
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import seed
from benchmarks.client import API
from benchmarks.deployment import Deployment
from benchmarks.harness import Alternation, count, memory_mib, pgbench, process, receiver, wait_for, wrk
from tests.support.ports import free_port

CONNECTIONS = 64
PAST = 10_000


def measure(server: str, chosen: Namespace) -> tuple[dict[str, Any], str]:
    seconds, keys = chosen.seconds, {"keys": seed.BUSINESSES}
    rounds = Alternation(chosen.rounds)
    with ExitStack() as stack:
        own = Deployment(stack, "peers", server)
        seed.payments(own.url, 1, PAST)
        service = own.serve()
        calls = _calls(Path(stack.enter_context(TemporaryDirectory())))
        plain = _plain_build(stack, own.url)
        for name, mode, script, variables in (
            ("initiate", "initiate", "initiate.sql", keys),
            ("read", "get", "read.sql", keys | {"payments": PAST}),
        ):
            rounds.add(
                name,
                {
                    "payagg": lambda: wrk(own.address, mode, calls[mode], CONNECTIONS, seconds),  # noqa: B023
                    "limit": lambda: pgbench(own.url, script, CONNECTIONS, seconds, **variables),  # noqa: B023
                    "plain build": lambda: wrk(plain, mode, calls[mode], CONNECTIONS, seconds),  # noqa: B023
                },
            )
        rounds.add(
            "initiate, one connection",
            {
                "payagg": lambda: wrk(own.address, "initiate", calls["initiate"], 1, seconds),
                "limit": lambda: pgbench(own.url, "initiate.sql", 1, seconds, **keys),
            },
        )
        sent = 0.0
        while sent < 100_000:
            sent += wrk(own.address, "initiate", calls["initiate"], CONNECTIONS, 10).rate * 10
        others = {"MiB of a server process": memory_mib(service), "after so many payments": int(sent)}
        others["seconds from start to ready"] = median(_start(own) for _ in range(chosen.rounds))
        others |= _delivered(stack, own, 4_000 * seconds)
    return rounds.figures | others, f"{rounds.table()}\n\n{json.dumps(others)}"


def _calls(folder: Path) -> dict[str, Path]:
    """Files for load.lua, by its modes."""
    keys, reads = folder / "keys", folder / "reads"
    keys.write_text("".join(f"{seed.secret(n)}\n" for n in range(1, seed.BUSINESSES + 1)))
    paths = ((seed.secret(seed.owner(n)), f"{API}/payments/{seed.reference(n)}") for n in range(1, PAST + 1))
    reads.write_text("".join(f"{key} {path}\n" for key, path in paths))
    return {"initiate": keys, "get": reads}


def _plain_build(stack: ExitStack, url: str) -> str:
    address = f"http://127.0.0.1:{(port := free_port())}"
    arguments = ["benchmarks.reference:app", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    environment = {"BENCH_DATABASE_URL": url.replace("postgresql://", "postgresql+psycopg://", 1)}
    stack.enter_context(process(["-m", "uvicorn", *arguments], environment, f"{address}/readyz"))
    return address


def _start(deployment: Deployment) -> float:
    begun = time.monotonic()
    with deployment.server(free_port()):
        return time.monotonic() - begun


def _delivered(stack: ExitStack, own: Deployment, number: int) -> dict[str, float]:
    """Signed webhooks a second from one worker process to a bare receiver, nothing else running."""
    address = receiver(stack)
    own.endpoints(f"{address}/hook")
    seed.due_deliveries(own.url, 1, 0, number)
    with own.worker() as worker:
        wait_for(address, 1)
        start, begun = count(address), time.monotonic()
        wait_for(address, number - 1_000)  # without the last ones, of which there are too few at once
        rate = (count(address) - start) / (time.monotonic() - begun)
        return {"webhooks a second": rate, "MiB of a worker": memory_mib(worker)}
