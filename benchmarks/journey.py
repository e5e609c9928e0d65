"""Whole journeys a second, from initiate to the webhook received, 64 at a time: of payagg, of pgbench sending what a
journey asks of the database (`journey.sql`), and of the plain build. One server and one worker process each."""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks import journey_calls as calls
from benchmarks import seed
from benchmarks.client import Connection, connected, share
from benchmarks.deployment import OWN, Deployment
from benchmarks.harness import Round, count, pgbench, process, wait_for
from tests.support.ports import free_port

AT_ONCE = 64
OF_PGBENCH, TIMES_PLAIN, P99_OVER_P50 = 0.4, 8, 10  # targets
Alternate = Callable[[str, dict[str, Callable[[], Round]]], dict[str, Round]]


@dataclass
class Load:
    """Journeys against one server on loopback; latencies are of `process`."""

    port: int
    receiver: str
    sent: int = 0  # journeys that ended, so webhooks that must come

    def run(self, seconds: int) -> Round:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._run(seconds))

    async def _run(self, seconds: int) -> Round:
        taken: list[float] = []
        errors = ended = 0
        end = time.monotonic() + seconds

        async def keep_on(connection: Connection, lane: int) -> None:
            nonlocal errors, ended
            number = lane
            while time.monotonic() < end:
                number += AT_ONCE
                try:
                    replies = await calls.whole(connection, number % seed.BUSINESSES + 1, f"{time.time_ns()}-{number}")
                except ValueError as wrong:
                    errors += 1
                    print(f"  {wrong}", file=sys.stderr, flush=True)
                    continue
                ended += 1
                taken.append(replies["process"].seconds)

        before, begun = count(self.receiver), time.monotonic()
        async with connected(self.port, AT_ONCE) as connections:
            await share(connections, range(AT_ONCE), keep_on)
        seconds_taken = time.monotonic() - begun
        received = count(self.receiver) - before  # those that came later count for nobody
        print(f"  {ended} journeys, {received} webhooks received, {seconds_taken:.1f} s", file=sys.stderr, flush=True)
        if not taken:
            raise SystemExit("no journey came to its end")
        self.sent += ended
        wait_for(self.receiver, self.sent)
        taken.sort()
        ms = [1000 * taken[len(taken) * part // 100] for part in (50, 99)]
        return Round(min(received, ended) / seconds_taken, ms[0], ms[1], errors)


def measure(server: str, secrets: dict[str, str], seconds: int, alternate: Alternate) -> dict[str, Any]:
    """What came of it beside the targets; the rounds are `alternate`'s."""
    with ExitStack() as stack:
        payagg = Deployment(stack, "journey_payagg", OWN, server, secrets)
        receivers = [receiver(stack) for _ in range(2)]
        payagg.endpoints(f"{receivers[0]}/hook")
        payagg.serve()
        payagg.configure_provider()
        stack.enter_context(payagg.worker())
        own = Load(payagg.port, receivers[0])
        limit = seeded("journey_limit", server, secrets, receivers[1])
        plain = seeded("journey_plain", server, secrets, receivers[1])
        other = Load(plain_build(stack, plain), receivers[1])
        medians = alternate(
            "journey",
            {
                "payagg": lambda: own.run(seconds),
                "limit": lambda: pgbench(limit.url, "journey.sql", AT_ONCE, seconds, keys=seed.BUSINESSES),
                "reference": lambda: other.run(seconds),
            },
        )
    ours = medians["payagg"]
    return {
        "of pgbench": [round(ours.rate / medians["limit"].rate, 3), f"target {OF_PGBENCH}"],
        "times the plain build": [round(ours.rate / medians["reference"].rate, 2), f"target {TIMES_PLAIN}"],
        "p99 of process over its p50": [round(ours.p99 / ours.p50, 2), f"target below {P99_OVER_P50}"],
        "errors": [ours.errors, "target 0"],
    }


def receiver(stack: ExitStack) -> str:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    stack.enter_context(process(["-m", "benchmarks.receiver", str(port)], {}, address + "/count"))
    return address


def seeded(name: str, server: str, secrets: dict[str, str], target: str) -> Deployment:
    """A database as the first server leaves it, with nobody on it."""
    with ExitStack() as brief:
        deployment = Deployment(brief, name, OWN, server, secrets)
        deployment.endpoints(f"{target}/hook")
        deployment.serve()
        deployment.configure_provider()
    return deployment


def plain_build(stack: ExitStack, deployment: Deployment) -> int:
    """The port of the plain build's server, with its worker beside it."""
    port = free_port()
    environment = {"BENCH_DATABASE_URL": deployment.url.replace("postgresql://", "postgresql+psycopg://", 1)}
    arguments = ["benchmarks.reference_journey:app", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    ready = f"http://127.0.0.1:{port}/readyz"
    stack.enter_context(process(["-m", "uvicorn", *arguments], environment, ready))
    stack.enter_context(process(["-m", "benchmarks.reference_worker"], environment, None))
    return port
