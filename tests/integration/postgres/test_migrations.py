"""Migrations beside those who use the database: they step back for whoever holds a lock, say who that is, and end."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from subprocess import run
from typing import Any

import psycopg
import pytest

from payagg.adapters.postgres.migrations import HEAD, is_current
from payagg.adapters.postgres.migrations.upgrade import MigrationBlocked, migrate, plan_migrations
from tests.support.postgres_world import execute
from tests.support.processes import environment, payagg

PATIENCE = 60.0
# What migration 0007 alters, and 0005 and 0008 build indexes on.
READ = "SELECT count(*) FROM payments AS report"
ADD = (
    "INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence, created_at,"
    " updated_at, expires_at) VALUES (%s, 'biz', 'SANDBOX', 100, 'NGN', 'INITIATED', 0, now(), now(), now())"
)


@contextmanager
def a_long_read(
    database_url: str, isolation: psycopg.IsolationLevel | None = None
) -> "Iterator[psycopg.Connection[Any]]":
    """A report that has read payments, and whose transaction goes on until it is told to end."""
    with psycopg.connect(database_url, application_name="nightly report") as connection:
        connection.isolation_level = isolation
        connection.execute(READ.encode())
        yield connection


class Lines:
    """The progress that a migration tells."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._changed:
            self.told.append(line)
            self._changed.notify_all()

    def first(self, words: str) -> str:
        """The first line with these words, once it is told."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._find(words), PATIENCE), self.told
            return self._find(words)[0]

    def _find(self, words: str) -> list[str]:
        return [line for line in self.told if words in line]


def revision_of(database_url: str) -> str:
    [(number,)] = execute(database_url, "SELECT version_num FROM alembic_version")
    return str(number)


def set_for_all(database_url: str, setting: str) -> None:
    """For every session of the database that begins from now on."""
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    execute(database_url, f"ALTER DATABASE {name} SET {setting}")


def add_payment(database_url: str, number: int) -> None:
    execute(database_url, ADD, values=[f"PAY-20250131-{number:06}"])


def test_a_migration_that_gets_no_lock_lets_others_through_and_is_done_when_it_can(empty_url: str) -> None:
    migrate(empty_url, to="0006")
    lines = Lines()
    with ThreadPoolExecutor(1) as pool, a_long_read(empty_url) as reader:
        migrating = pool.submit(migrate, empty_url, tell=lines, tries=1000, pause=0.1)
        told = lines.first("try 1 of 1000")
        assert f"pid {reader.info.backend_pid} (nightly report as payagg, for " in told
        assert f"s: {READ}) is in the way" in told
        for number in range(5):
            add_payment(empty_url, number)
        assert not migrating.done()
        reader.commit()
        migrating.result()
    assert is_current(empty_url)
    assert lines.told[0].startswith("0007: ")
    assert lines.told[-1].startswith("  done in ")


def test_a_migration_that_never_gets_its_lock_gives_up_and_has_changed_nothing(empty_url: str) -> None:
    migrate(empty_url, to="0006")
    with a_long_read(empty_url) as reader:
        with pytest.raises(MigrationBlocked) as refused:
            migrate(empty_url, tries=2, pause=0)
        told = str(refused.value)
        assert told.startswith("Migration 0007 got no lock in 2 tries and changed nothing: pid ")
        assert f"pid {reader.info.backend_pid} (nightly report as payagg" in told
        assert "The schema is at 0006" in told
        # As the command tells it.
        program = (
            "from payagg.adapters.postgres.migrations.upgrade import migrate; migrate.__kwdefaults__['tries'] = 1;"
            "from payagg.entrypoints.cli.main import main; main(['migrate'])"
        )
        environ = environment(PAYAGG_DATABASE_URL=empty_url)
        done = run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert done.stderr.startswith("payagg: Migration 0007 got no lock in 1 tries")
        assert "0007: Secrets that outlive their gateway" in done.stdout
    assert revision_of(empty_url) == "0006"
    columns = "SELECT 1 FROM information_schema.columns WHERE column_name IN ('is_test', 'replaced_secrets')"
    assert execute(empty_url, columns) == []


def test_an_index_is_built_beside_writes_and_long_transactions(empty_url: str) -> None:
    migrate(empty_url, to="0004")
    # As a role behind PgBouncer has it, for its servers.
    set_for_all(empty_url, "statement_timeout = '1s'")
    lines = Lines()
    with ThreadPoolExecutor(1) as pool, a_long_read(empty_url, psycopg.IsolationLevel.REPEATABLE_READ) as reader:
        migrating = pool.submit(migrate, empty_url, to="0005", tell=lines, tries=1)
        assert f"pid {reader.info.backend_pid} (nightly report" in lines.first("  waits for ")
        assert lines.first("  waiting for ")  # the phase, as Postgres calls it
        add_payment(empty_url, 1)
        assert not migrating.done()
        reader.commit()
        migrating.result()
    assert revision_of(empty_url) == "0005"
    assert execute(empty_url, "SELECT 1 FROM pg_index WHERE NOT indisvalid") == []


def test_a_database_whose_transactions_keep_their_snapshot_is_migrated(empty_url: str) -> None:
    """Building an index waits for every transaction that has one."""
    set_for_all(empty_url, "default_transaction_isolation = 'serializable'")
    done = payagg("migrate", PAYAGG_DATABASE_URL=empty_url)  # which would wait for ever, and is given up
    assert done.returncode == 0, done.stderr


def test_a_schema_that_is_ahead_stays_as_it_is(database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")
    migrate(database_url)
    assert plan_migrations(database_url) == []
    assert revision_of(database_url) == "9999"
    # A deployment that goes back to this release runs its migration, too.
    assert payagg("migrate", PAYAGG_DATABASE_URL=database_url).returncode == 0


def test_a_dry_run_prints_what_is_pending_and_the_command_tells_its_progress(empty_url: str) -> None:
    whole = payagg("migrate", "--dry-run", PAYAGG_DATABASE_URL=empty_url)
    assert whole.returncode == 0, whole.stderr
    assert "CREATE TABLE payments" in whole.stdout
    assert "RAISE EXCEPTION '%', TG_ARGV[0]" in whole.stdout  # as the server takes it, whoever sends it
    assert execute(empty_url, "SELECT to_regclass('payments')") == [(None,)]
    migrate(empty_url, to="0007")
    rest = payagg("migrate", "--dry-run", PAYAGG_DATABASE_URL=empty_url).stdout
    assert next(line for line in rest.splitlines() if line.startswith("-- 00")).startswith("-- 0008: What the sweeps")
    assert "CREATE TABLE payments" not in rest
    assert "CREATE INDEX CONCURRENTLY IF NOT EXISTS payments_with_payer ON payments" in rest
    assert f"UPDATE alembic_version SET version_num='{HEAD}'" in rest
    assert revision_of(empty_url) == "0007"
    told = payagg("migrate", PAYAGG_DATABASE_URL=empty_url).stdout.splitlines()
    assert told[0].startswith("The database is ")
    assert told[1].startswith("0008: ")
    assert told[2].startswith("  ")
    assert any(line.startswith("  done in ") for line in told)
    assert told[-1] == "The schema is up to date."
    assert payagg("migrate", "--dry-run", PAYAGG_DATABASE_URL=empty_url).stdout == "Nothing is pending.\n"
