"""The `world` of the checkout's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.provider_world import World, world_on


@pytest.fixture
async def world(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(database_url, tmp_path) as world:
        yield world
