"""`api`: the whole application on Postgres, answering on loopback; one server and database for all tests of a module,
which each open shops of their own there."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, Shop, an_api

# What the tests of a module send together is no attack.
NO_LIMITS = replace(
    SETTINGS,
    unknown_reference_limit=10**6,
    webhook_rate_limit=10**6,
    reference_rate_limit=10**6,
    refused_body_limit=10**6,
)


@pytest.fixture(scope="module")
async def shared_store(new_database: Callable[[], AbstractContextManager[str]]) -> AsyncIterator[PostgresStore]:
    with new_database() as url:
        store = PostgresStore(url, pool_size=10, pgbouncer=False)
        yield store
        await store.close()


@pytest.fixture(scope="module")
async def api(shared_store: PostgresStore) -> AsyncIterator[Api]:
    async with an_api(services_over(shared_store, NO_LIMITS)) as api:
        await api.open_gateways()
        yield api


@pytest.fixture
async def own_api(store: PostgresStore) -> AsyncIterator[Api]:
    """With a database of the test's own, and no gateway."""
    async with an_api(services_over(store)) as api:
        yield api


@pytest.fixture
async def shop(api: Api) -> Shop:
    """A business of the test's own."""
    return await api.open_shop()


@pytest.fixture
async def other(api: Api) -> Shop:
    """Another business."""
    return await api.open_shop()
