"""What a move between two cells keeps, between two stores in memory."""

import pytest

from payagg.adapters.memory import MemoryStore
from tests.contracts.cell_moves import CellMoveContract


class TestMoveBetweenMemoryStores(CellMoveContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def other(self) -> MemoryStore:
        return MemoryStore()
