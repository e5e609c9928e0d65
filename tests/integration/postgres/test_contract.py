"""Postgres keeps every promise that a store makes."""

from collections.abc import AsyncIterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.contracts.cell_moves import CellMoveContract
from tests.contracts.store import StoreContract


class TestPostgresStore(StoreContract):
    """Each test has an empty database of its own."""


class TestMoveBetweenPostgresStores(CellMoveContract):
    @pytest.fixture
    async def other(self, other_database_url: str) -> AsyncIterator[PostgresStore]:
        store = PostgresStore(other_database_url, pool_size=10, pgbouncer=False)
        yield store
        await store.close()
