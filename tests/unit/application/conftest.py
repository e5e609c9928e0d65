"""The worlds that most tests of the use cases begin with; a module with another world has its own."""

import pytest

from tests.support.gateway_world import GatewayWorld
from tests.support.memory_shop import MemoryShop


@pytest.fixture
async def shop() -> MemoryShop:
    return await MemoryShop().open()


@pytest.fixture
def world() -> GatewayWorld:
    return GatewayWorld()
