"""A real Postgres for the tests that ask: one server per pytest process, one database per test.

What only those tests need is imported by their fixtures, so that unit tests start at once.
"""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql

from tests.support.postgres_rules import superuser_url

if TYPE_CHECKING:
    from payagg.adapters.postgres.store import PostgresStore

# The shipped contracts assert too; rewritten, a failure shows the values.
pytest.register_assert_rewrite("payagg.testing")
pytest_plugins = ["tests.interface.plugin", "tests.support.planted_report"]

# A loaded machine is no defect: nothing here fails for being slow.
# CI judges a change by the same examples each time; new ones are looked for everywhere else.
settings.register_profile(
    "payagg",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("payagg")

TEMPLATE = "template_of_tests"
_numbers = count(1)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of this process's server, its template migrated. Not durable: a power cut may eat a test's database."""
    from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
    from payagg.adapters.postgres.migrations.upgrade import migrate

    with (
        tempfile.TemporaryDirectory(prefix="payagg-tests-") as folder,
        EmbeddedPostgres(Path(folder) / "state", durable=False) as server,
    ):
        # More than the application may: tests make databases, and look at what a switched-off trigger lets in.
        _execute(server.superuser_url, "ALTER ROLE {} CREATEDB", "payagg")
        _execute(server.superuser_url, "GRANT SET ON PARAMETER session_replication_role TO {}", "payagg")
        _execute(server.url, "CREATE DATABASE {}", TEMPLATE)
        migrate(_at(server.url, TEMPLATE))
        yield server.url


@pytest.fixture
def database_url(postgres: str) -> Iterator[str]:
    """A migrated, empty database of the test's own."""
    name = f"test_{next(_numbers)}"
    _execute(postgres, f"CREATE DATABASE {{}} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY", name)
    yield _at(postgres, name)
    # An autovacuum worker there is the superuser's, and only the superuser may end it.
    _execute(superuser_url(postgres), "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
async def store(database_url: str) -> "AsyncIterator[PostgresStore]":
    from payagg.adapters.postgres.store import PostgresStore

    store = PostgresStore(database_url, pool_size=10, pgbouncer=False)
    yield store
    await store.close()


def _execute(url: str, statement: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


def _at(url: str, database: str) -> str:
    head, _, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{database}?{query}"
