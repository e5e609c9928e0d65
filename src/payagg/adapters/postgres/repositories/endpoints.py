"""Merchants' webhook endpoints as rows."""

# ruff: noqa: S608 - our own words

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, and_, bindparam, case, not_, null, or_

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.repositories.webhook_events import last_event
from payagg.adapters.postgres.statement import Statement
from payagg.domain.values import Environment
from payagg.domain.webhook import Subscriber, WebhookEndpoint

ENDPOINTS_MAX = 1_000  # listed; more than a business may have, but not more than some have from earlier times


ENDPOINT = RowMap(WebhookEndpoint, "webhook_endpoints", environment=Environment, events=tuple)
# Written by the queue alone.
_COUNTERS = ("failing_since", "successful", "failed", "concurrency")
_OWN = "business_id = :business_id AND removed_at IS NULL"
_OLDEST_FIRST = "ORDER BY webhook_endpoints.created_at, webhook_endpoints.id"
ENDPOINTS = ENDPOINT.query(f"WHERE {_OWN} ORDER BY is_active DESC, created_at DESC, id DESC LIMIT {ENDPOINTS_MAX}")
_SUBSCRIBER = "webhook_endpoints.id, webhook_endpoints.environment, webhook_endpoints.events"
SUBSCRIBERS = Statement(f"""
SELECT {_SUBSCRIBER} FROM webhook_endpoints WHERE {_OWN} AND environment = :environment AND is_active
{_OLDEST_FIRST} LIMIT {ENDPOINTS_MAX}
""")
# Those of a payment's business and environment, each with the last event's id; a row without one where there are none.
SUBSCRIBERS_TO = Statement(f"""
SELECT last.id, {_SUBSCRIBER} FROM payments p
LEFT JOIN LATERAL ({last_event("p.business_id, p.environment")}) AS last ON true
LEFT JOIN webhook_endpoints
    ON (webhook_endpoints.business_id, webhook_endpoints.environment) = (p.business_id, p.environment) AND is_active
WHERE p.reference = :reference {_OLDEST_FIRST} LIMIT {ENDPOINTS_MAX}
""")
SUBSCRIBERS_OF = Statement(f"""
SELECT business_id, {_SUBSCRIBER} FROM webhook_endpoints
WHERE business_id = ANY(:business_ids) AND is_active {_OLDEST_FIRST}
""")
FIND_ENDPOINT = ENDPOINT.query(f"WHERE {_OWN} AND id = :id")
LOCK_ENDPOINT = ENDPOINT.query(f"WHERE {_OWN} AND id = :id FOR UPDATE")
ADD_ENDPOINT = Statement(ENDPOINT.insert())
# The right-hand sides see the row as it was: a new address or an activation starts a new run of failures.
_RESTARTED = or_(
    ENDPOINT.table.c.url != bindparam("url"),
    and_(not_(ENDPOINT.table.c.is_active), bindparam("is_active", type_=Boolean)),
)
SAVE_ENDPOINT = Statement(
    ENDPOINT.update(*(name for name in ENDPOINT.names if name not in _COUNTERS)).values(
        failing_since=case((_RESTARTED, null()), else_=ENDPOINT.table.c.failing_since)
    )
)
REMOVE_ENDPOINT = Statement(
    "UPDATE webhook_endpoints SET is_active = false, removed_at = :now, updated_at = :now WHERE id = :endpoint_id"
)


def subscribers_in(rows: Iterable[Any]) -> list[Subscriber]:
    return [Subscriber(id, Environment(environment), tuple(events)) for id, environment, events in rows]


class PostgresEndpoints(PostgresRepository):
    async def of_business(self, business_id: str) -> list[WebhookEndpoint]:
        found = ENDPOINT.all(await self._connection.rows(ENDPOINTS, business_id=business_id))
        return sorted(found, key=lambda endpoint: (endpoint.created_at, endpoint.id))

    async def subscribers(self, business_id: str, environment: Environment) -> list[Subscriber]:
        values = {"business_id": business_id, "environment": environment.value}
        return subscribers_in(await self._connection.rows(SUBSCRIBERS, **values))

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[Subscriber]]:
        business_ids = sorted({business_id for business_id, _ in owners})
        found: dict[tuple[str, Environment], list[Subscriber]] = {}
        for business_id, *own in await self._connection.rows(SUBSCRIBERS_OF, business_ids=business_ids):
            (subscriber,) = subscribers_in([own])
            found.setdefault((business_id, subscriber.environment), []).append(subscriber)
        return {owner: endpoints for owner, endpoints in found.items() if owner in owners}

    async def lock(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return ENDPOINT.from_row(await self._connection.row(LOCK_ENDPOINT, business_id=business_id, id=endpoint_id))

    async def get(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return ENDPOINT.from_row(await self._connection.row(FIND_ENDPOINT, business_id=business_id, id=endpoint_id))

    async def add(self, endpoint: WebhookEndpoint) -> None:
        self._connection.send(ADD_ENDPOINT, **ENDPOINT.values(endpoint))

    async def save(self, endpoint: WebhookEndpoint) -> None:
        self._connection.send(SAVE_ENDPOINT, **ENDPOINT.values(endpoint))

    async def remove(self, endpoint_id: str, now: datetime) -> None:
        self._connection.send(REMOVE_ENDPOINT, endpoint_id=endpoint_id, now=now)
