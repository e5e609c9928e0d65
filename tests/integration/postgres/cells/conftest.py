"""A move of the business between two databases that begins with all of it at the first."""

from collections.abc import AsyncIterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.integration.postgres.cells.moving import Removal, open_cells


@pytest.fixture
async def removal(store: PostgresStore, other_database_url: str) -> AsyncIterator[Removal]:
    other = PostgresStore(other_database_url, pool_size=10, pgbouncer=False)
    await open_cells(store, other)
    yield Removal(store, other)
    await other.close()
