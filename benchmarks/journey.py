"""Whole journeys a second, from initiate to the webhook received, 64 at a time: of one server and one worker process,
and of pgbench sending what a journey asks of the database (`journey.sql`). Latencies are of `process`, of pgbench's a
whole journey's."""

import asyncio
import sys
import time
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks import journey_calls as calls
from benchmarks import seed
from benchmarks.client import Connection, connected, share
from benchmarks.deployment import Deployment
from benchmarks.harness import Alternation, Round, count, pgbench, receiver, wait_for

AT_ONCE = 64


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


def measure(server: str, chosen: Namespace) -> tuple[dict[str, Any], str]:
    rounds = Alternation(chosen.rounds)
    with ExitStack() as stack:
        own = Deployment(stack, "journey", server)
        target = receiver(stack)
        own.endpoints(f"{target}/hook")
        own.serve()
        own.configure_provider()
        stack.enter_context(own.worker())
        load = Load(own.port, target)
        # The same tables and settings, with nobody on them.
        limit = Deployment(stack, "journey_limit", server)
        limit.endpoints(f"{target}/hook")
        rounds.add(
            "journey",
            {
                "payagg": lambda: load.run(chosen.seconds),
                "limit": lambda: pgbench(limit.url, "journey.sql", AT_ONCE, chosen.seconds, keys=seed.BUSINESSES),
            },
        )
    return rounds.figures, rounds.table()
