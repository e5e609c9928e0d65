"""What a payment leaves on the disk, and what changes when ten thousand payments have become ten million: two databases
of one server, measured in turn.

What is left is of `--lives` payments by plain SQL.
Both databases of the rest hold the same businesses, and a large one's events lie in the partitions of twelve weeks.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import count

import psutil
import psycopg

from benchmarks import calls, seed
from benchmarks.calls import API, request
from benchmarks.deployment import Deployment
from benchmarks.figures import HERE, Alternation, Round, cpu_seconds
from benchmarks.load import exchanges, rate
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.partitions import AHEAD, make
from payagg.adapters.postgres.week import WEEK
from tests.support.http_world import merchant_token

SMALL = 10_000
# Bytes of the rows and of each index; updates, and those that wrote to no index.
LEFT = """
SELECT pg_relation_size('payments'), pg_indexes_size('payments'), n_tup_upd, n_tup_hot_upd
FROM pg_stat_user_tables WHERE relname = 'payments'
"""
CONNECTIONS = 64
LOG = "/merchant/businesses/biz_bench_{0}/webhooks/whe_bench_{0}/deliveries"


class Grown(Deployment):
    """One database with `past` settled payments and all they left behind, and a service on it."""

    def __init__(self, stack: ExitStack, name: str, server: str, past: int) -> None:
        super().__init__(stack, name, server)
        self.past = past
        # Twelve weeks, over which its events lie.
        for weeks in (0, AHEAD + 1):
            make(self.url, "PAY", datetime.combine(seed.FIRST_DAY, datetime.min.time(), UTC) + weeks * WEEK)
        seed.endpoints(self.url)
        seed.handed_over(self.url, "PAY-20250102-", seed.OPEN)
        chunk = 1_000_000
        for first in range(1, past + 1, chunk):
            begun, last = time.monotonic(), min(first + chunk - 1, past)
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda load: load(self.url, first, last), seed.LOADS))  # noqa: B023
            print(f"  {name}: {last:,} in {time.monotonic() - begun:.0f} s", flush=True)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
        self.serve()

    def calls(self) -> dict[str, Callable[[], bytes]]:
        """Of each operation, spread over everything there is."""
        token, number, step = merchant_token("bench"), count().__next__, max(1, self.past // 20_000)

        def page(query: str) -> bytes:
            """Of a business's payments, of which there are ten in the small database."""
            return request("GET", f"{API}/payments?limit=5{query}", bearer=seed.secret(seed.owner(number())))

        return {
            "initiate": lambda: calls.initiate(seed.owner(number())),
            "read": lambda: calls.read(*seed.past(number() * step, self.past)),
            "list": lambda: page(""),
            "list, its middle": lambda: page(f"&after={seed.cursor(self.past // 2)}"),
            "list of a status that nobody has": lambda: page("&status=REVERSED"),
            "verify": lambda: calls.verify(seed.open_reference(number() % seed.OPEN + 1)),
            "log": lambda: request("GET", API + LOG.format(seed.owner(number())), bearer=token),
        }

    def asked(self, mode: str, call: Callable[[], bytes], seconds: int) -> Round:
        return rate(self.port, CONNECTIONS, seconds, exchanges(call, 201 if mode == "initiate" else 200))


def left(server: str, lives: int) -> str:
    """A line of the table: what so many payments cost and left."""
    url = server.replace("/payagg?", "/lives?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE lives")
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((HERE / "lives.sql").read_bytes())
        connection.execute("SET synchronous_commit = off")
        session = psutil.Process(connection.info.backend_pid)
        begun = cpu_seconds(session)
        start = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        connection.execute("CALL live(%s)", [lives])
        used = cpu_seconds(session) - begun
        log = connection.execute("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", start).fetchone()
        connection.execute("VACUUM payments")
        connection.execute("SELECT pg_stat_force_next_flush()")
    with psycopg.connect(url) as connection:
        rows, indexes, updates, in_place = connection.execute(LEFT).fetchone()  # type: ignore[misc]
    each = (f"{part / lives:,.0f}" for part in (rows, indexes, log[0], 1e6 * used))  # type: ignore[index]
    return f"| {' | '.join(each)} | {in_place / updates:.2f} |"


def measure(server: str, chosen: Namespace) -> str:
    """What `--lives` payments leave, and every operation on `--past` payments and on SMALL."""
    table = ["| row B | indexes B | log B | session us | updates in place |", "|---" * 5 + "|"]
    table.append(left(server, chosen.lives))
    if not chosen.past:
        return "\n".join(table)
    past, rounds = chosen.past, Alternation(chosen.rounds)
    with ExitStack() as stack:
        sides = {name: Grown(stack, name, server, number) for name, number in (("large", past), ("small", SMALL))}
        asked = {name: side.calls() for name, side in sides.items()}
        for mode in asked["large"]:
            loads = {name: partial(side.asked, mode, asked[name][mode], chosen.seconds) for name, side in sides.items()}
            rounds.add(f"{mode} at {past:,} and {SMALL:,}", loads)
    return "\n".join([*table, "", rounds.table()])
