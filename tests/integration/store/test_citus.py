"""The store's contracts in tenant schemas of Citus, where PAYAGG_TEST_CITUS_URL names one: a superuser's URL of a
database with the extension, on the coordinator."""

import os
from collections.abc import AsyncIterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.testing.contracts.cell_moves import CellMoveContract
from payagg.testing.contracts.store import StoreContract
from tests.support.cell_schemas import rows, tenant_store

URL = os.environ.get("PAYAGG_TEST_CITUS_URL", "")
if not URL:
    pytest.skip("PAYAGG_TEST_CITUS_URL names no Citus", allow_module_level=True)


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    assert rows(URL, "SELECT FROM pg_extension WHERE extname = 'citus'"), "the database has no extension citus"
    async with tenant_store(URL) as store:
        yield store


@pytest.fixture
async def other() -> AsyncIterator[PostgresStore]:
    async with tenant_store(URL) as store:
        yield store


class TestStoreInATenantSchema(StoreContract):
    """Each test has a schema of its own."""


class TestMoveBetweenTenantSchemas(CellMoveContract):
    """Of one cluster."""
