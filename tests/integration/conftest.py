"""The `api` of the HTTP tests: the whole application on Postgres, answering on loopback."""

from collections.abc import AsyncIterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.support.assembly import services_over
from tests.support.http_world import Api, an_api


@pytest.fixture
async def api(store: PostgresStore) -> AsyncIterator[Api]:
    async with an_api(services_over(store)) as api:
        yield api
