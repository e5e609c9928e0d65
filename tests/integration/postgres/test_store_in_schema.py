"""Postgres keeps every promise of a store in a schema too, with another cell's tables behind it in the search path.

By night alone (`make lab ARGS="soak"`), as each test copies a database of three schemas. What differs from `public`
has tests of its own: tests/integration/postgres/test_cells_in_one_database.py.
"""

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.contracts.cell_moves import CellMoveContract
from tests.contracts.store import StoreContract
from tests.support.rounds import ROUNDS, SHORT

pytestmark = pytest.mark.skipif(ROUNDS <= SHORT, reason="a part of the soak")


@pytest.fixture
def store(store_in_schema: PostgresStore) -> PostgresStore:
    return store_in_schema


@pytest.fixture
def other(other_in_schema: PostgresStore) -> PostgresStore:
    return other_in_schema


class TestStoreInASchema(StoreContract):
    """Of three in one database."""


class TestMoveBetweenSchemas(CellMoveContract):
    """Of one database."""
