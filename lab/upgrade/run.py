"""From the previous release to this one and back, under load behind HAProxy: no request may fail.

Then the previous release's tests on this release's schema. Under faults: the previous release dies at each step of a
payment and this one goes on; and servers and workers of both are killed and cut off beside each other, Postgres too.
"""

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
from psycopg import sql

from lab.crashes.run import all_tried
from lab.kit.buyer import Buyer, Load, Phase, a_client, loaded
from lab.kit.figures import RunSummary
from lab.kit.judgement import wrongs
from lab.kit.places import a_folder
from lab.kit.processes import Processes, until, with_addresses
from lab.kit.site import shop_over_http
from lab.soak.hardships import KILLS
from lab.soak.hardships import tried as killed
from lab.upgrade.release import Release, checked_out, git, migrations, previous_commit
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from tests.support.machine import ROOT, program
from tests.support.ports import free_port
from tests.support.processes import answers, is_ready

CONFIG = ROOT / "deploy" / "haproxy.cfg"


@contextlib.contextmanager
def balancing(folder: Path, ports: Sequence[int]) -> Iterator[str]:
    """The origin of a HAProxy before servers at these ports."""
    port, file = free_port(), folder / "haproxy.cfg"
    file.write_text(with_addresses(CONFIG.read_text(), f"127.0.0.1:{port}", [f"127.0.0.1:{one}" for one in ports]))
    with Processes(folder) as processes:
        processes.start("haproxy", [program("haproxy"), "-q", "-db", "-f", str(file)])
        yield f"http://127.0.0.1:{port}"


BUYERS = 4
PAUSE = 0.1  # seconds between two payments of one buyer
STEADY_SECONDS = 5.0  # of load before and after what is done to the servers
FOUND_SECONDS = 3.0  # until HAProxy has checked twice that a server is ready
READ_SECONDS = 5.0  # that a report goes on once the migration has begun
# Of the previous release's tests: those of what a server does with the database, and nothing that goes by the clock.
TESTS = (
    "tests/integration/postgres/test_contract.py",
    "tests/integration/postgres/test_row_locks.py",
)


@dataclass
class RollingSite:
    """Three servers behind a balancer, and a worker: each runs a release, and may run another one next. Buyers who
    repeat nothing go on meanwhile."""

    database_url: str
    ports: list[int]
    processes: Processes
    tally: RunSummary
    buyers: list[Buyer] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    def phase(self, name: str) -> None:
        """What is done from now on; what was done until now is told."""
        if self.phases:
            failed = self.phases[-1].failed
            self.tally.line(str(self.phases[-1]), [f"{count} x {what}" for what, count in failed.items()])
        self.phases.append(Phase(name))
        for buyer in self.buyers:
            buyer.phase = self.phases[-1]

    def start(self, name: str, release: Release) -> None:
        words = ["worker"]
        if name != "worker":
            words = ["serve", "--no-worker", "--port", str(self.port(name))]
        state = str(self.processes.folder)
        environ = release.environment(
            PAYAGG_DATABASE_URL=self.database_url,
            PAYAGG_STATE_DIR=state,
            PAYAGG_POOL_SIZE="5",
            PAYAGG_BASE_URL=f"http://127.0.0.1:{self.ports[0]}",  # of whichever answers
        )
        self.processes.start(name, release.command(*words), environ)

    def roll(self, name: str, release: Release) -> None:
        """Another release in the place of the one that is there, ready when this returns."""
        self.processes.stop(name)
        self.start(name, release)
        if name != "worker":
            self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Until it gets requests."""
        until(lambda: is_ready(self.port(name)), f"{name} ready")
        time.sleep(FOUND_SECONDS)

    def port(self, name: str) -> int:
        return self.ports[int(name.removeprefix("api")) - 1]


async def upgraded_and_back(old: Release, new: Release, tally: RunSummary) -> RollingSite:
    ports = [free_port() for _ in range(3)]
    with (
        a_folder("upgrade") as folder,
        EmbeddedPostgres(folder / "postgres") as server,
        balancing(folder, ports) as origin,
        Processes(folder) as processes,
    ):
        site = RollingSite(server.url, ports, processes, tally)
        old.say("migrate", PAYAGG_DATABASE_URL=server.url)
        for one in ("api1", "api2", "worker"):
            site.start(one, old)
        for one in ("api1", "api2"):
            await asyncio.to_thread(site.wait_for, one)
        async with contextlib.AsyncExitStack() as stack:
            loads = []
            for number in range(BUYERS):
                # Half of them keep their connection, half open one for each request.
                limits = httpx.Limits(max_keepalive_connections=None if number % 2 else 0)
                base = f"{origin}/api/v1"
                client = await stack.enter_async_context(a_client(0, base_url=base, limits=limits))
                business, as_business = await shop_over_http(client, f"Shop {number}", "ada")
                site.buyers.append(Buyer([client], as_business, business))
                loads.append(Load(site.buyers[-1].journey(f"buyer {number} payment"), PAUSE))
            site.phase("two servers of the previous release")
            async with loaded(*loads):
                await story(site, old, new)
            site.phase("judged")
        wrong = wrongs(server.url, site.buyers)
        tally.line(f"{sum(len(one.purchases) for one in site.buyers)} payments acknowledged", wrong)
        new.say("doctor", PAYAGG_DATABASE_URL=server.url)
    return site


async def story(site: RollingSite, old: Release, new: Release) -> None:
    await asyncio.sleep(STEADY_SECONDS)
    site.phase("a server of this release starts before the migration")
    site.start("api3", new)
    if migrations(old.folder.name) != migrations("HEAD"):
        await waits_not_ready(site)
    site.phase(f"`payagg migrate`, past a report that reads every table for {READ_SECONDS:g} s more")
    await asyncio.to_thread(migrated_past_a_report, site.database_url, new)
    site.phase("the server that waited becomes ready by itself")
    await asyncio.to_thread(site.wait_for, "api3")
    site.phase("the others roll to this release, one by one")
    for name in ("api1", "api2", "worker"):
        await asyncio.to_thread(site.roll, name, new)
    site.phase("three servers of this release")
    await asyncio.sleep(STEADY_SECONDS)
    site.phase("all roll back to the previous release, one by one")
    for name in ("api1", "api2", "api3", "worker"):
        await asyncio.to_thread(site.roll, name, old)
    site.phase("three servers of the previous release on the new schema")
    await asyncio.sleep(STEADY_SECONDS)


async def waits_not_ready(site: RollingSite) -> None:
    """The new server is alive, gets no request, and stays that way for a while."""
    port = site.ports[2]
    await asyncio.to_thread(until, lambda: answers(port, "/healthz"), "the new server answers")
    await asyncio.sleep(STEADY_SECONDS)
    ready = await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{port}/readyz", trust_env=False)
    if ready.status_code != 503 or not site.processes.lives("api3"):
        raise SystemExit("A server of this release must wait for the migration, and be not ready meanwhile.")


def migrated_past_a_report(database_url: str, release: Release) -> None:
    with psycopg.connect(database_url, application_name="report") as reader:
        tables = reader.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        names = sql.SQL(", ").join(sql.Identifier(table) for (table,) in tables)
        reader.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names))
        environ = release.environment(PAYAGG_DATABASE_URL=database_url, PYTHONUNBUFFERED="1")
        migrating = subprocess.Popen(release.command("migrate"), env=environ, stdout=subprocess.PIPE, text=True)
        assert migrating.stdout is not None
        for line in migrating.stdout:
            print(line, end="", file=sys.stderr)
            if re.match("[0-9]{4}: ", line):  # it begins
                time.sleep(READ_SECONDS)
                break
    print(migrating.communicate()[0], end="", file=sys.stderr)
    if migrating.returncode != 0:
        raise SystemExit("The migration failed.")


def tested(old: Release, new: Release) -> str:
    """The previous release's tests on this release's schema; the line that counts them."""
    plugin = Path(__file__).parent / "plugin"
    newer = os.pathsep.join((new.python, str(new.folder / "src")))
    environ = old.environment(PAYAGG_TEST_NEWER=newer) | {"PYTHONPATH": f"{plugin}{os.pathsep}{old.folder / 'src'}"}
    files = [one for one in TESTS if (old.folder / one).exists()]
    command = [old.python, "-m", "pytest", "-q", "-n", "2", "-p", "newer_schema", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=old.folder, env=environ, check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout, file=sys.stderr)
    if done.returncode != 0:
        raise SystemExit("The previous release's tests fail on this release's schema.")
    return done.stdout.strip().splitlines()[-1].strip("= ").partition(" in ")[0]


def under_faults(old: Release, arguments: Sequence[str]) -> int:
    """The exit status. Both run on this release's schema, as during an upgrade."""
    tally = RunSummary("upgrade", arguments)
    all_tried(tally, "", old.with_laboratory)
    killed(tally, KILLS, old.with_laboratory)
    return tally.end(whole=True, name="upgrade faults")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab upgrade", description=__doc__)
    parser.add_argument(
        "--previous", metavar="REF", help="default: the newest tag, or the last commit with fewer migrations"
    )
    parser.add_argument("--only", choices=("roll", "tests", "faults"), help="one of the three")
    chosen = parser.parse_args(arguments)
    tally = RunSummary("upgrade", arguments)
    paid, requests, counted = 0, 0, ""
    with a_folder("previous") as folder:
        folder.chmod(0o755)  # for the account that its tests' Postgres runs as
        ref = chosen.previous or previous_commit()
        old, new = checked_out(ref, folder), Release("this release", ROOT, sys.executable)
        print(f"From {old.name}: {git('log', '-1', '--format=%s', old.folder.name)}; to {new.name}", flush=True)
        if chosen.only in (None, "roll"):
            site = asyncio.run(upgraded_and_back(old, new, tally))
            paid = sum(one.status == "SUCCESS" for buyer in site.buyers for one in buyer.purchases)
            requests = sum(phase.good for phase in site.phases)
        if chosen.only in (None, "tests"):
            counted = tested(old, new)
            tally.line(f"the previous release's tests on this schema: {counted}")
        tests = int(counted.partition(" passed")[0] or 0)
        status = tally.end(whole=chosen.only is None, paid=paid, requests=requests, tests=tests) if tally.tried else 0
        if chosen.only in (None, "faults"):
            status |= under_faults(old, arguments)
    return status
