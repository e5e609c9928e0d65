"""What is done otherwise for Citus, run on Postgres, which takes it too: the guide's SQL, and the migrations as they
are where the extension is. On Citus itself: test_citus.py."""

import inspect
from collections.abc import AsyncIterator, Iterator

import pytest
from sqlalchemy import text

from payagg.adapters.postgres.delivery_queue import statements
from payagg.adapters.postgres.migrations import engine
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.rate_limit import RateLimit
from payagg.testing.builders import NOW
from payagg.testing.contracts.archive import ArchiveContract
from tests.support.cell_schemas import rows, tenant_store
from tests.support.postgres_rules import admitted_by, superuser_url


@pytest.fixture(scope="module")
def admin_url(postgres: str) -> Iterator[str]:
    with admitted_by(postgres, "local all all trust"):
        yield superuser_url(postgres)


@pytest.fixture
async def store(admin_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    monkeypatch.setattr(engine, "HAS_CITUS", text("SELECT true"))
    async with tenant_store(admin_url) as store:
        yield store


def test_no_statement_that_writes_has_a_recursive_part() -> None:
    named = dict(inspect.getmembers(statements, lambda one: isinstance(one, Statement)))
    recursive = {name: one.reads for name, one in named.items() if b"RECURSIVE" in one.sql}
    assert recursive == {"WALK": True, "OLDEST": True}


@pytest.mark.anyio
class TestFormsForCitus(ArchiveContract):
    """Each test has a schema of its own."""


@pytest.mark.anyio
async def test_every_table_is_logged_and_every_identity_wide(store: PostgresStore, admin_url: str) -> None:
    tables = "FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
    async with store.begin() as tx:
        schema = (await tx.moves.database()).split()[-1]
    [(many, logged)] = rows(
        admin_url, f"SELECT count(*), count(*) FILTER (WHERE relpersistence = 'p') {tables}", schema
    )
    assert many == logged > 20
    narrow = "SELECT FROM pg_attribute WHERE attidentity <> '' AND atttypid <> 'int8'::regtype AND attrelid IN"
    assert rows(admin_url, f"{narrow} (SELECT oid {tables})", schema) == []


@pytest.mark.anyio
async def test_hits_are_counted(store: PostgresStore) -> None:
    limit = RateLimit(2)
    assert [await store.count_hit("inbound:1", NOW, limit) is None for _ in range(3)] == [True, True, False]
