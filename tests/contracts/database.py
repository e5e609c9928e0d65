"""A store for tests: its repositories can be called without a block around the calls."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, Protocol, cast

import pytest

from payagg.application.ports.store import Store, Transaction

REPOSITORIES = {
    **{"Business": "businesses", "ApiKey": "api_keys", "Gateway": "gateways", "WebhookEndpoint": "endpoints"},
    **{"Payment": "payments", "Attempt": "attempts", "ProviderCall": "provider_calls", "Resolution": "resolutions"},
    **{"Anomaly": "anomalies", "AuditEntry": "audit"},
    **{"ReconciliationRun": "reconciliations", "ProviderEvent": "inbox"},
}


class Database(Store, Transaction, Protocol):
    """Each call of a repository is a transaction of its own; `begin` makes one of several."""


class _Autocommit:
    def __init__(self, store: Store, repository: str | type = "") -> None:
        self._store, self._repository = store, repository

    def __getattr__(self, name: str) -> Any:
        if not self._repository and name == "of":
            return partial(_Autocommit, self._store)
        if not self._repository:
            return getattr(self._store, name) if hasattr(self._store, name) else _Autocommit(self._store, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            async with self._store.begin() as tx:
                one = self._repository
                found = getattr(tx, one) if isinstance(one, str) else tx.of(one)
                return await getattr(found, name)(*arguments, **named)

        return call


def autocommit(store: Store) -> Database:
    return cast(Database, _Autocommit(store))


class OnDatabase:
    @pytest.fixture
    def db(self, store: Store) -> Database:
        return autocommit(store)


async def breaks_a_rule(work: Awaitable[object]) -> None:
    """Each store has its own word for that; Python's are for a defect of the test."""
    with pytest.raises(Exception) as broken:  # noqa: PT011
        await work
    assert not isinstance(broken.value, AttributeError | NameError | TypeError)


async def put(db: Transaction, *rows: object) -> None:
    """Adds each row where its kind is kept, in this order."""
    for row in rows:
        await getattr(db, REPOSITORIES[type(row).__name__]).add(row)
