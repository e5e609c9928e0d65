"""What changes when ten thousand payments have become ten million: two databases of one server, measured in turn.

Both hold the same businesses, and a large one's events lie in the partitions of twelve weeks. Whatever a sweep finds to
do is added equally to both before each round, so the only difference is how much lies around it.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from benchmarks import seed
from benchmarks.harness import Round, process, wrk
from benchmarks.sweeps import WORK, Work, until_done
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.partitions import AHEAD, WEEK, make
from payagg.adapters.security import Tokens
from payagg.entrypoints.bootstrap import running
from payagg.entrypoints.settings import read_settings
from tests.support.ports import free_port

SMALL = 10_000
CONNECTIONS = 64
API = "/api/v1"


class Grown:
    """One database with `past` settled payments and all they left behind, and a service on it."""

    def __init__(self, stack: ExitStack, server: str, name: str, past: int, secrets: dict[str, str]) -> None:
        self.past = past
        self.url = server.replace("/payagg?", f"/{name}?")
        self.environment = secrets | {"PAYAGG_DATABASE_URL": self.url}
        self.rounds = 0
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        migrate(self.url)
        # Twelve weeks, over which its events lie.
        for weeks in (0, AHEAD + 1):
            make(self.url, "PAY", datetime.combine(seed.FIRST_DAY, datetime.min.time(), UTC) + weeks * WEEK)
        seed.businesses(self.url)
        seed.endpoints(self.url)
        seed.open_payments(self.url)
        chunk = 1_000_000
        for first in range(1, past + 1, chunk):
            begun = time.monotonic()
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda load: load(self.url, first, min(first + chunk - 1, past)), seed.LOADS))  # noqa: B023
            print(f"  {name}: {min(first + chunk - 1, past):,} in {time.monotonic() - begun:.0f} s", flush=True)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
        port = free_port()
        self.service = f"http://127.0.0.1:{port}"
        arguments = ["-m", "payagg", "serve", "--no-worker", "--port", str(port)]
        stack.enter_context(process(arguments, self.environment, self.service + "/readyz"))

    def calls(self, folder: Path, secrets: dict[str, str]) -> dict[str, Path]:
        """Files of calls for load.lua, spread over everything there is."""
        tokens = Tokens(secrets["PAYAGG_JWT_KEY"], secrets["PAYAGG_JWT_ALGORITHM"])
        claims = {"sub": "bench", "type": "merchant", "emailVerified": True}
        token = tokens.issue(claims, 86_400, int(time.time()))
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
            async with running(read_settings(os.environ | self.environment), self.url) as services:
                await services.store.is_current()
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


def measure(
    server: str,
    folder: Path,
    secrets: dict[str, str],
    past: int,
    seconds: int,
    alternate: Callable[[str, dict[str, Callable[[], Round]]], dict[str, Round]],
) -> None:
    """Hands every operation and sweep to `alternate`, once on `past` payments and once on SMALL."""
    with ExitStack() as stack:
        small, large = (
            Grown(stack, server, name, number, secrets) for name, number in (("small", SMALL), ("large", past))
        )
        few, many = small.calls(folder, secrets), large.calls(folder, secrets)
        for mode in few:

            def load(side: Grown, calls: Path, mode: str = mode) -> Round:
                return wrk(side.service, "initiate" if mode == "initiate" else "get", calls, CONNECTIONS, seconds)

            alternate(
                f"{mode} at {past:,}",
                {
                    "payagg": lambda calls=many[mode], load=load: load(large, calls),  # type: ignore[misc]
                    f"at {SMALL:,}": lambda calls=few[mode], load=load: load(small, calls),  # type: ignore[misc]
                },
            )
        for name, due in DUE.items():
            work = WORK[name]
            alternate(
                f"sweep {name} at {past:,}",
                {
                    "payagg": lambda due=due, work=work: large.sweep(due, work),  # type: ignore[misc]
                    f"at {SMALL:,}": lambda due=due, work=work: small.sweep(due, work),  # type: ignore[misc]
                },
            )
