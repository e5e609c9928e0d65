"""`python -m benchmarks.scale`: what each step of a payment asks of Postgres, and what that makes for many payments.

Each step is done for `--requests` payments, one after the other on one connection, so that no two share a statement or a
commit: the most that it costs. Postgres tells the statements in its log, the flushed commits and the write-ahead log in
its statistics. CPU comes from `benchmarks/figures-steps.json` and bytes at rest from `benchmarks/figures.json`, which
`make bench` wrote. The tables are written between the markers of docs/scale.md.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from benchmarks import journey_calls as calls
from benchmarks.client import Reply, connected, send_all
from benchmarks.cpu import PostgresCpu
from benchmarks.deployment import OWN, PROVIDER_KEY, Deployment
from benchmarks.harness import count, postgres, wait_for, whole_pages_off, write_between
from benchmarks.journey import receiver
from benchmarks.run import SECRETS
from benchmarks.side import Side, checked

DOCUMENT = OWN / "docs" / "scale.md"
STEPS = ("<!-- steps: written by `make scale` -->", "<!-- steps: end -->")
RATES = ("<!-- rates: written by `make scale` -->", "<!-- rates: end -->")
# Payments a second, and the share of a day's seconds that they last if the busiest hour has a tenth of the day.
AT_RATES = (10, 100, 500, 2_000)
PEAK_HOURS = 10
# What a journey of a payer who pays at once sends, by the names that `make bench` gives their CPU.
JOURNEY = ("initiate", "page", "detail", "gateways", "process", "verify, settles", "verify, final", "read")
# Each business pays more often than its key is noted as used, which is once a minute.
BUSINESSES = 5
TOLD = 11.0  # seconds after which a session that has nothing to do has told its statistics
COUNTED = """
SELECT (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'),
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')
"""


@dataclass(frozen=True)
class Asked:
    """Of one request: statements, flushes of the log that somebody waited for, and bytes of the log."""

    statements: float
    commits: float
    log: float


@dataclass
class Postgres:
    """What the server of one deployment tells of itself."""

    url: str

    @property
    def _log(self) -> Path:
        [folder] = parse_qs(urlsplit(self.url).query)["host"]
        return Path(folder).parent / "postgres.log"

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Every statement goes to the log meanwhile."""
        database = urlsplit(self.url).path.lstrip("/")
        self._do(f"ALTER DATABASE {database} SET log_min_duration_statement = 0")
        yield
        self._do(f"ALTER DATABASE {database} RESET log_min_duration_statement")

    def asked(self, work: Callable[[], None], number: int) -> Asked:
        """What each of `number` requests asked for, from a checkpoint on."""
        self._do("CHECKPOINT")
        told, before = self._log.stat().st_size, self._counted()
        work()
        time.sleep(TOLD)
        after = self._counted()
        with self._log.open("rb") as log:
            log.seek(told)
            # What asks for these figures is not counted: it sends its statements unprepared.
            statements = sum(b"  execute s" in line and b" BEGIN" not in line for line in log)
        flushes, size = (float(late) - float(early) for early, late in zip(before, after, strict=True))
        return Asked(statements / number, flushes / number, size / number)

    def _counted(self) -> tuple[float, ...]:
        with psycopg.connect(self.url) as connection:
            row = connection.execute(COUNTED).fetchone()
        assert row is not None
        return row

    def _do(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True, prepare_threshold=None) as connection:
            connection.execute(statement.encode())


def measured(server: str, number: int) -> dict[str, tuple[Asked, float]]:
    """Each step's demands, and the bytes of the log without whole pages."""
    found: dict[str, tuple[Asked, float]] = {}
    with ExitStack() as stack:
        own = Deployment(stack, "scale", OWN, server, SECRETS)
        target = receiver(stack)
        own.endpoints(f"{target}/hook")
        database = Postgres(own.url)
        stack.enter_context(database.telling())
        side = Side(own, own.serve(), PostgresCpu(own.url), target, number)
        own.configure_provider()
        whole = _round(own, side, database, target, number)
        with whole_pages_off(own.url):
            bare = _round(own, side, database, target, number)
        for name, asked in whole.items():
            found[name] = asked, bare[name].log
    return found


def _round(own: Deployment, side: Side, database: Postgres, target: str, number: int) -> dict[str, Asked]:
    side.rounds += 1
    found: dict[str, Asked] = {}
    replies: list[Reply] = []

    def step(name: str, requests: Sequence[bytes], word: bytes, status: int = 200) -> None:
        def work() -> None:
            replies[:] = checked(asyncio.run(_sent(own.port, requests)), word, status)

        found[name] = database.asked(work, number)

    orders = [(n % BUSINESSES + 1, f"scale-{time.time_ns()}-{n}") for n in range(number)]
    step("initiate", [calls.initiate(*order) for order in orders], b'"INITIATED"', 201)
    payments = [(business, reply.data()["reference"]) for (business, _), reply in zip(orders, replies, strict=True)]
    references = [reference for _, reference in payments]
    step("page", [calls.page(reference) for reference in references], b"<html")
    step("detail", [calls.detail(reference) for reference in references], b'"INITIATED"')
    step("gateways", [calls.gateways(reference) for reference in references], b'"sandbox"')
    step("process", [calls.process(reference) for reference in references], b'"PENDING"')
    step("verify, settles", [calls.verify(reference) for reference in references], b'"SUCCESS"')
    step("verify, final", [calls.verify(reference) for reference in references], b'"SUCCESS"')
    step("read", [calls.read(*payment) for payment in payments], b'"SUCCESS"')
    due = count(target) + number

    def delivered() -> None:
        with own.worker():
            wait_for(target, due)
            time.sleep(1)  # for the worker to write down what it delivered

    found["webhook delivered"] = database.asked(delivered, number)
    step("event accepted", side.events(PROVIDER_KEY), b"", 200)
    return found


async def _sent(port: int, requests: Sequence[bytes]) -> list[Reply]:
    async with connected(port, 1) as connections:
        return await send_all(connections, requests)


def table(found: dict[str, tuple[Asked, float]], cpu: dict[str, tuple[float, float]]) -> str:
    """A row for each step and one for a whole payment."""
    lines = [
        "| step | statements | flushed commits | log, bytes | log from a checkpoint on | server ms | Postgres ms |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = {name: (asked.statements, asked.commits, bare, asked.log) for name, (asked, bare) in found.items()}
    journey = [*JOURNEY, "webhook delivered"]
    rows["whole payment"] = tuple(sum(rows[name][part] for name in journey) for part in range(4))  # type: ignore[assignment]
    for name, (statements, commits, bare, whole) in rows.items():
        own = cpu.get("whole journey" if name == "whole payment" else name)
        told = f"{own[0]:.2f} | {own[1]:.2f}" if own else " | "
        lines.append(f"| {name} | {statements:.1f} | {commits:.1f} | {bare:,.0f} | {whole:,.0f} | {told} |")
    return "\n".join(lines)


def rates(found: dict[str, tuple[Asked, float]], cpu: dict[str, tuple[float, float]], at_rest: tuple[int, int]) -> str:
    """What so many whole payments a second ask of machines, were nothing shared."""
    journey = [*JOURNEY, "webhook delivered"]
    commits = sum(found[name][0].commits for name in journey)
    log = sum(found[name][1] for name in journey)
    server, database = cpu["whole journey"]
    lines = [
        "| payments a second at the peak | payments a day | cores of servers and workers | cores of Postgres "
        "| commits a second | log, MB a second | GB a day at rest |",
        "|---|---|---|---|---|---|---|",
    ]
    for rate in AT_RATES:
        a_day = rate * 3_600 * PEAK_HOURS
        lines.append(
            f"| {rate:,} | {a_day:,} | {rate * server / 1000:.1f} | {rate * database / 1000:.1f} | {rate * commits:,.0f} "
            f"| {rate * log / 1e6:.1f} | {a_day * sum(at_rest) / 1e9:.1f} |"
        )
    return "\n".join(lines)


def cpu_of(file: Path) -> dict[str, tuple[float, float]]:
    steps = json.loads(file.read_text())["figures"]["steps"]["ms"]["payagg"]
    return {name: (one["server_ms"], one["postgres_ms"]) for name, one in steps.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300)
    chosen = parser.parse_args()
    cpu = cpu_of(OWN / "benchmarks" / "figures-steps.json")
    at_rest = json.loads((OWN / "benchmarks" / "figures-footprint.json").read_text())["figures"]["footprint"]["in all"]
    with postgres() as server:
        found = measured(server, chosen.requests)
    write_between(table(found, cpu), DOCUMENT, STEPS)
    write_between(rates(found, cpu, at_rest), DOCUMENT, RATES)
    print(DOCUMENT.read_text("utf-8"))


if __name__ == "__main__":
    main()
