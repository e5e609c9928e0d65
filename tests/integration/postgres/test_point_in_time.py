"""What docs/operating/backup.md says of an archived log and of an instant to go back to, done with pgBackRest."""

import asyncio
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from payagg_testing.builders import a_business, a_payment

from payagg.adapters.postgres.store import PostgresStore
from tests.integration.postgres.test_backup import steps
from tests.support.processes import SECRETS, payagg

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(
        not (shutil.which("pgbackrest") and PROGRAMS and os.getuid() == 0),
        reason="needs Debian's pgbackrest and postgresql, and root, to act as the account postgres",
    ),
]
# The server must have started with the log archived before anything is written.
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
wal_level = replica
archive_mode = on
archive_command = 'pgbackrest --stanza=payagg archive-push %p'
"""
REPOSITORY = """
[global]
repo1-path={folder}/repository
repo1-retention-full=2
repo1-cipher-type=aes-256-cbc
repo1-cipher-pass=a-long-secret
compress-type=zst
start-fast=y
log-path={folder}
lock-path={folder}/lock

[payagg]
pg1-path={folder}/data
pg1-socket-path={folder}
"""


class ArchivedCluster:
    """A Postgres of Debian's in a folder of the account `postgres`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"postgresql://postgres@/payagg?host={folder}"

    def run(self, script: str, **variables: str) -> None:
        """A script of the account `postgres`, which must succeed."""
        environ = {
            "PATH": os.pathsep.join([str(PROGRAMS[-1]), os.environ["PATH"]]),
            "PGDATA": str(self.folder / "data"),
            "PGHOST": str(self.folder),
            "PGBACKREST_CONFIG": str(self.folder / "pgbackrest.conf"),
            **variables,
        }
        command = ["runuser", "-u", "postgres", "--", "sh", "-euc", script]
        done = subprocess.run(command, check=False, cwd=self.folder, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def now(self) -> datetime:
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        return row[0].astimezone(UTC)  # type: ignore[no-any-return]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ArchivedCluster]:
    account = pwd.getpwnam("postgres")
    folder = Path("/tmp") / f"pitr-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, account.pw_uid, account.pw_gid)
    (folder / "pgbackrest.conf").write_text(REPOSITORY.format(folder=folder))
    cluster = ArchivedCluster(folder)
    cluster.run("initdb --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 >/dev/null")
    with (folder / "data" / "postgresql.conf").open("a") as settings:
        settings.write(SETTINGS.format(folder=folder))
    cluster.run('pg_ctl start --wait --silent --log="$PGDATA/server.log"; createdb payagg')
    try:
        yield cluster
    finally:
        cluster.run("pg_ctl stop --mode=immediate --silent || true")
        shutil.rmtree(folder)


async def add(url: str, reference: str) -> None:
    store = PostgresStore(url, pool_size=2, pgbouncer=False)
    await store.add_payment(a_payment(reference=reference, now=await store.now()))
    await store.close()


async def test_a_database_goes_back_to_an_instant_and_providers_are_asked_about_the_rest(
    cluster: ArchivedCluster,
) -> None:
    assert payagg("migrate", PAYAGG_DATABASE_URL=cluster.url).returncode == 0
    store = PostgresStore(cluster.url, pool_size=2, pgbouncer=False)
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
    await store.close()
    cluster.run(steps("backup.md", "The log, archived"))

    await add(cluster.url, "PAY-20250131-BEFORE")
    await asyncio.sleep(2)  # the backup must have ended in an earlier second
    instant = cluster.now()
    await asyncio.sleep(0.1)
    await add(cluster.url, "PAY-20250131-AFTER0")

    cluster.run(steps("backup.md", "Restore to an instant"), RESTORE_TO=instant.isoformat(sep=" "))
    for _ in range(600):  # it answers before it is promoted
        with psycopg.connect(cluster.url) as connection:
            row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        if row == (False,):
            break
        await asyncio.sleep(0.1)
    store = PostgresStore(cluster.url, pool_size=2, pgbouncer=False)
    assert await store.find_payment("PAY-20250131-BEFORE") is not None
    assert await store.find_payment("PAY-20250131-AFTER0") is None
    await store.close()
    caught_up = payagg("catch-up", "--since", instant.isoformat(), PAYAGG_DATABASE_URL=cluster.url, **SECRETS)
    assert caught_up.returncode == 0, caught_up.stderr
    told = payagg("doctor", PAYAGG_DATABASE_URL=cluster.url)
    assert told.returncode == 0, told.stdout
