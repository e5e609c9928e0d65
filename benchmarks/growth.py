"""What changes when ten thousand payments have become ten million: two databases of one server, measured in turn.

Both hold the same businesses, and a large one's events lie in the partitions of twelve weeks. Whatever a sweep finds to
do is added equally to both before each round, so the only difference is how much lies around it.
"""

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from benchmarks import seed
from benchmarks.client import API
from benchmarks.deployment import Deployment
from benchmarks.harness import Alternation, Round, wrk
from benchmarks.sweeps import WORK, Work, services_on, until_done
from payagg.adapters.postgres.partitions import AHEAD, WEEK, make

SMALL = 10_000
CONNECTIONS = 64


class Grown(Deployment):
    """One database with `past` settled payments and all they left behind, and a service on it."""

    def __init__(self, stack: ExitStack, name: str, server: str, past: int) -> None:
        super().__init__(stack, name, server)
        self.past, self.rounds = past, 0
        # Twelve weeks, over which its events lie.
        for weeks in (0, AHEAD + 1):
            make(self.url, "PAY", datetime.combine(seed.FIRST_DAY, datetime.min.time(), UTC) + weeks * WEEK)
        seed.endpoints(self.url)
        seed.handed_over(self.url, "PAY-20250102-", seed.OPEN)
        chunk = 1_000_000
        for first in range(1, past + 1, chunk):
            begun = time.monotonic()
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda load: load(self.url, first, min(first + chunk - 1, past)), seed.LOADS))  # noqa: B023
            print(f"  {name}: {min(first + chunk - 1, past):,} in {time.monotonic() - begun:.0f} s", flush=True)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
        self.serve()

    def calls(self, folder: Path) -> dict[str, Path]:
        """Files of calls for load.lua, spread over everything there is."""
        token = self.token(type="merchant", emailVerified=True)
        lines = {
            "initiate": (seed.secret(n) for n in range(1, seed.BUSINESSES + 1)),
            "read": (
                f"{seed.secret(seed.owner(n))} {API}/payments/{seed.reference(n)}"
                for n in range(1, self.past + 1, max(1, self.past // 20_000))
            ),
            "list": self._lists("limit=5"),
            "list, its middle": self._lists(f"limit=5&after={seed.cursor(self.past // 2)}"),
            "list of a status that nobody has": self._lists("limit=5&status=REVERSED"),
            "verify": (f"none {API}/public/payments/{seed.open_reference(n)}/verify" for n in range(1, seed.OPEN + 1)),
            "log": (
                f"{token} {API}/merchant/businesses/biz_bench_{n}/webhooks/whe_bench_{n}/deliveries"
                for n in range(1, seed.BUSINESSES + 1)
            ),
        }
        paths: dict[str, Path] = {}
        for mode, calls in lines.items():
            paths[mode] = folder / f"{self.past}-{len(paths)}"
            paths[mode].write_text("".join(f"{line}\n" for line in calls))
        return paths

    def _lists(self, query: str) -> Iterator[str]:
        """A page of each business's payments, of which there are ten in the small database."""
        return (f"{seed.secret(n)} {API}/payments?{query}" for n in range(1, seed.BUSINESSES + 1))

    def sweep(self, due: Callable[[str, int, int], int], work: Work) -> Round:
        """Adds what is `due`, then times `work` until all of it is done; items a second."""
        self.rounds += 1
        number = due(self.url, self.rounds, self.past)

        async def timed() -> float:
            async with services_on(self.url, self.environment) as services:
                begun = time.monotonic()
                await until_done(services, work, number)
                return time.monotonic() - begun

        return Round(number / asyncio.run(timed()), 0, 0, 0)


DUE: dict[str, Callable[[str, int, int], int]] = {
    "expiry": seed.expired,
    "reconciliation": seed.to_ask,
    "inbox": seed.inbound,
    "retention": seed.expired_deliveries,
    "dispatch": seed.due_deliveries,
    "drains": lambda *_: 500,
}


def measure(server: str, chosen: Namespace) -> tuple[dict[str, Any], str]:
    """Every operation and sweep on `--past` payments and on SMALL."""
    past, rounds = chosen.past, Alternation(chosen.rounds)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        sides = {name: Grown(stack, name, server, number) for name, number in (("large", past), ("small", SMALL))}
        calls = {name: side.calls(folder) for name, side in sides.items()}

        def loads(mode: str) -> dict[str, Callable[[], Round]]:
            kind = "initiate" if mode == "initiate" else "get"
            return {
                name: partial(wrk, side.address, kind, calls[name][mode], CONNECTIONS, chosen.seconds)
                for name, side in sides.items()
            }

        for mode in calls["large"]:
            rounds.add(f"{mode} at {past:,} and {SMALL:,}", loads(mode))
        for name, due in DUE.items():
            works = {side: partial(sides[side].sweep, due, WORK[name]) for side in sides}
            rounds.add(f"sweep: {name} at {past:,} and {SMALL:,}", works)
    return rounds.figures, rounds.table()
