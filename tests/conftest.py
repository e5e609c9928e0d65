"""A real Postgres for the tests that ask: one server per pytest process, one database per test.

What only those tests need is imported by their fixtures, so that unit tests start at once.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
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
pytest.register_assert_rewrite("payagg_testing")
pytest_plugins = ["tests.support.answers.plugin"]

# A loaded machine is no defect: nothing here fails for being slow.
# CI judges a change by the same examples each time; new ones are looked for everywhere else.
settings.register_profile(
    "payagg", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=os.environ.get("CI") == "true"
)
settings.load_profile("payagg")

TEMPLATE = "template_of_tests"
# Where it is there and has room for every process's server: disks take long to find a place for each database's 400
# files among those that were just removed.
MEMORY, ROOM = Path("/dev/shm"), 8 << 30
_numbers = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rule", help="run the tests of one rule alone: payments.2, PAYMENT_NOT_FOUND, 'GET /payments'")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nobody is left alone with a long test when the others have ended."""
    if rule := config.getoption("rule"):
        items[:] = [item for item in items if any(rule in mark.args for mark in item.iter_markers("rule"))]
    if "PAYAGG_TEST_POSTGRES" in os.environ:  # what needs none is no other on it
        items[:] = [item for item in items if "postgres" in getattr(item, "fixturenames", ())]
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """Thousands of tests and what they import stay until the end: the collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of this process's server, its template migrated. Not durable: a power cut may eat a test's database.

    PAYAGG_TEST_POSTGRES is the folder of another Postgres' programs, as Debian has them: payagg runs on 15 or newer.
    Its texts are in the order of a language, as most servers have them; the embedded one's are in that of their bytes.
    """
    from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
    from payagg.adapters.postgres.migrations.upgrade import migrate

    if other := os.environ.get("PAYAGG_TEST_POSTGRES"):
        embedded, patch = "payagg.adapters.postgres.embedded", pytest.MonkeyPatch()
        patch.setattr(f"{embedded}.server.programs", lambda _: Path(other))
        patch.setattr(f"{embedded}.data_folder.MAJOR", int(Path(other).parent.name))
        order = ("--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
        patch.setattr(f"{embedded}.data_folder.LOCALE", ("--encoding=UTF8", *order))

    with (
        tempfile.TemporaryDirectory(prefix="payagg-tests-", dir=_in_memory()) as folder,
        EmbeddedPostgres(Path(folder) / "state", durable=False) as server,
    ):
        # More than the application may: tests make databases, and look at what a switched-off trigger lets in.
        _execute(server.superuser_url, "ALTER ROLE {} CREATEDB", "payagg")
        _execute(server.superuser_url, "GRANT SET ON PARAMETER session_replication_role TO {}", "payagg")
        _execute(server.url, "CREATE DATABASE {}", TEMPLATE)
        migrate(_at(server.url, TEMPLATE))
        yield server.url


def _in_memory() -> Path | None:
    """None: the usual folder for temporary files."""
    has_room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY if has_room else None


@pytest.fixture
def database_url(postgres: str) -> Iterator[str]:
    """A migrated, empty database of the test's own."""
    with _database(postgres) as url:
        yield url


@pytest.fixture
def database_urls(postgres: str) -> Iterator[list[str]]:
    """Three of them."""
    with _database(postgres) as one, _database(postgres) as two, _database(postgres) as three:
        yield [one, two, three]


@pytest.fixture
def empty_url(postgres: str) -> Iterator[str]:
    """A database of the test's own without a schema."""
    with _database(postgres, "template1") as url:
        yield url


@pytest.fixture
def other_database_url(postgres: str) -> Iterator[str]:
    """Another one, as of another cell."""
    with _database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def new_database(postgres: str) -> Callable[..., AbstractContextManager[str]]:
    """Another one, for as long as whoever asked wants it; a copy of the database that is named, if one is."""
    return partial(_database, postgres)


@contextmanager
def _database(postgres: str, template: str = TEMPLATE) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _execute(postgres, f"CREATE DATABASE {{}} TEMPLATE {template} STRATEGY FILE_COPY", name)
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
