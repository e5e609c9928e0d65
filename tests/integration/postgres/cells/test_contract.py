"""What a move between two cells keeps, between two databases."""

from collections.abc import AsyncIterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.contracts.cell_moves import CellMoveContract


class TestMoveBetweenPostgresStores(CellMoveContract):
    @pytest.fixture
    async def other(self, other_database_url: str) -> AsyncIterator[PostgresStore]:
        store = PostgresStore(other_database_url, pool_size=10, pgbouncer=False)
        yield store
        await store.close()
