"""`make upgrade-test`: from the previous release to this one and back, under load behind HAProxy: no request may fail.
Then the previous release's tests on this release's schema. Writes its table into docs/operating/upgrade.md."""

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
from psycopg import sql

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from tests.support.ports import free_port
from tests.upgrade.balancer import Balancer, balancing
from tests.upgrade.load import UpgradeLoad
from tests.upgrade.release import ROOT, Release, checked_out, git, previous_commit, this_release

DOCUMENT = ROOT / "docs" / "operating" / "upgrade.md"
BEGIN, END = "<!-- upgrade: written by `make upgrade-test` -->", "<!-- upgrade: end -->"
STOP_SECONDS = 60
STEADY_SECONDS = 5.0  # of load before and after what is done to the servers
READ_SECONDS = 5.0  # that a report goes on once the migration has begun
# Of the previous release's tests: those of what a server does with the database, and nothing that goes by the clock.
TESTS = (
    "tests/integration/store/test_store_contract.py",
    "tests/integration/store/test_races.py",
    "tests/integration/store/test_row_locks.py",
    "tests/integration/webhooks/test_webhook_queue.py",
)


@dataclass
class RollingSite:
    """Three servers behind a balancer, and a worker: each runs a release, and may run another one next."""

    database_url: str
    state: Path
    ports: list[int]
    balancer: Balancer
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str, release: Release) -> None:
        words = ["worker"]
        if name != "worker":
            port = self.ports[int(name.removeprefix("api")) - 1]
            words = ["serve", "--no-worker", "--port", str(port)]
        environ = release.environment(
            PAYAGG_DATABASE_URL=self.database_url, PAYAGG_STATE_DIR=str(self.state), PAYAGG_POOL_SIZE="5"
        )
        command = release.command(*words)
        with (self.state / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, env=environ, cwd=self.state, stderr=log)

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        if process.poll() is not None:
            raise SystemExit(f"{name} ended by itself with status {process.returncode}.")
        process.terminate()
        if process.wait(STOP_SECONDS) != 0:
            raise SystemExit(f"{name} did not stop cleanly.")

    def roll(self, name: str, release: Release) -> None:
        """Another release in the place of the one that is there, ready when this returns."""
        self.stop(name)
        self.start(name, release)
        if name != "worker":
            self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Until it gets requests."""
        if not self.balancer.sends_to(name):
            log = (self.state / f"{name}.log").read_text().splitlines()
            raise SystemExit("\n".join([*log[-20:], f"HAProxy never found {name} ready."]))

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


async def upgraded_and_back(old: Release, new: Release) -> UpgradeLoad:
    with tempfile.TemporaryDirectory(prefix="payagg-upgrade-") as name:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(name, 0o711)
        folder = Path(name)
        with EmbeddedPostgres(folder / "postgres") as server, a_site(server.url, folder) as site:
            old.say("migrate", PAYAGG_DATABASE_URL=server.url)
            for one in ("api1", "api2", "worker"):
                site.start(one, old)
            for one in ("api1", "api2"):
                await asyncio.to_thread(site.wait_for, one)
            load = UpgradeLoad(site.balancer.origin, await a_secret_key(site, old))
            load.phase("two servers of the previous release")
            async with load.running():
                await story(site, load, old, new)
            load.faults += await asyncio.to_thread(lost, server.url, load)
            new.say("doctor", PAYAGG_DATABASE_URL=server.url)
    return load


async def story(site: RollingSite, load: UpgradeLoad, old: Release, new: Release) -> None:
    await asyncio.sleep(STEADY_SECONDS)
    load.phase("a server of this release starts before the migration")
    site.start("api3", new)
    await waits_not_ready(site)
    load.phase(f"`payagg migrate`, past a report that reads every table for {READ_SECONDS:g} s more")
    await asyncio.to_thread(migrated_past_a_report, site.database_url, new)
    load.phase("the server that waited becomes ready by itself")
    await asyncio.to_thread(site.wait_for, "api3")
    load.phase("the others roll to this release, one by one")
    for name in ("api1", "api2", "worker"):
        await asyncio.to_thread(site.roll, name, new)
    load.phase("three servers of this release")
    await asyncio.sleep(STEADY_SECONDS)
    load.phase("all roll back to the previous release, one by one")
    for name in ("api1", "api2", "api3", "worker"):
        await asyncio.to_thread(site.roll, name, old)
    load.phase("three servers of the previous release on the new schema")
    await asyncio.sleep(STEADY_SECONDS)


@contextlib.contextmanager
def a_site(database_url: str, folder: Path) -> Iterator[RollingSite]:
    ports = [free_port() for _ in range(3)]
    state = folder / "state"
    state.mkdir()
    with balancing(folder, ports) as balancer:
        site = RollingSite(database_url, state, ports, balancer)
        try:
            yield site
        finally:
            site.end()


async def a_secret_key(site: RollingSite, release: Release) -> str:
    """Of a new business, made as an operator and its owner make one."""
    url = {"PAYAGG_DATABASE_URL": site.database_url}
    made = release.say("business", "create", "--name", "Shop", "--owner", "ada", "--kyc", "APPROVED", **url)
    business = made.split('"')[3]
    token = release.say("token", "merchant", "--sub", "ada")
    async with httpx.AsyncClient(base_url=site.balancer.origin, trust_env=False) as client:
        answer = await client.post(
            f"/api/v1/merchant/businesses/{business}/api-keys",
            json={"environment": "SANDBOX", "name": "Server"},
            headers={"Authorization": f"Bearer {token}"},
        )
        return str(answer.raise_for_status().json()["data"]["secretKey"])


async def waits_not_ready(site: RollingSite) -> None:
    """The new server is alive, gets no request, and stays that way for a while."""
    origin = f"http://127.0.0.1:{site.ports[2]}"
    async with httpx.AsyncClient(base_url=origin, trust_env=False) as client:
        for _ in range(300):
            with contextlib.suppress(httpx.TransportError):
                if (await client.get("/healthz")).status_code == 200:
                    break
            await asyncio.sleep(0.1)
        else:
            raise SystemExit("The new server never answered.")
        await asyncio.sleep(STEADY_SECONDS)
        is_ready = (await client.get("/readyz")).status_code != 503
    if is_ready or site.processes["api3"].poll() is not None or site.balancer.state("api3") == "UP":
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


def lost(database_url: str, load: UpgradeLoad) -> list[str]:
    """What we acknowledged and the database does not have, and payments that nobody asked for."""
    with psycopg.connect(database_url) as connection:
        rows: dict[str, str] = dict(connection.execute("SELECT reference, status FROM payments").fetchall())
    wrong = [f"{one} was acknowledged and is not paid" for one in load.acknowledged if rows.get(one) != "SUCCESS"]
    # An initiation without an answer may have been stored all the same.
    unanswered = sum("initiate" in fault for fault in load.faults)
    if not load.initiated <= len(rows) <= load.initiated + unanswered:
        wrong.append(f"{load.initiated} payments were initiated, and {len(rows)} are stored")
    return wrong


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


def table(load: UpgradeLoad, old: Release, new: Release) -> str:
    lines = ["| Meanwhile | seconds | requests | failed | slowest answer |", "|---|---|---|---|---|"]
    for one in load.phases:
        lines.append(
            f"| {one.name} | {one.seconds:.0f} | {one.requests} | {one.failed} | {one.slowest * 1000:.0f} ms |"
        )
    when, commit = git("log", "-1", "--format=%cs"), git("rev-parse", "--short=12", "HEAD")
    told = (
        f"{when}, {old.name} to {new.name} ({commit}) and back. {len(load.acknowledged)} payments were acknowledged "
        f"as paid and all of them are; `payagg doctor` is clean."
    )
    return "\n".join([*lines, "", told])


def write(text: str) -> None:
    before, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"{DOCUMENT.name} lacks the markers of this table.")
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make upgrade-test", description=__doc__)
    parser.add_argument(
        "--previous", metavar="REF", help="default: the newest tag, or the last commit with fewer migrations"
    )
    parser.add_argument("--folder", type=Path, help="where its files are kept for the next time; default: nowhere")
    parser.add_argument("--only", choices=("roll", "tests"), help="one of the two, without writing the table")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = chosen.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payagg-previous-")))
        folder.chmod(0o755)  # for the account that its tests' Postgres runs as
        ref = chosen.previous or previous_commit()
        old, new = checked_out(ref, folder.resolve()), this_release(ref, folder.resolve())
        print(f"From {old.name}: {git('log', '-1', '--format=%s', old.folder.name)}", file=sys.stderr)
        load = asyncio.run(upgraded_and_back(old, new)) if chosen.only != "tests" else None
        if load is not None:
            print(table(load, old, new))
            if load.faults:
                print("\n".join(load.faults[:20]), file=sys.stderr)
                return 1
        counted = tested(old, new) if chosen.only != "roll" else ""
    print(counted)
    if load is not None and counted:
        write(f"{table(load, old, new)} The previous release's tests on the new schema: {counted}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
