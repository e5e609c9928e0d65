"""Merchants' webhook endpoints as rows."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ARRAY, Boolean, Text, and_, any_, bindparam, case, not_, null, or_, select, update

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text
from payagg.adapters.postgres.schema.tables import payments, webhook_endpoints
from payagg.adapters.postgres.statement import Statement
from payagg.domain.values import Environment
from payagg.domain.webhook import WebhookEndpoint

ENDPOINTS_MAX = 1_000  # listed; more than a business may have, but not more than some have from earlier times


ENDPOINT = RowMap(WebhookEndpoint, webhook_endpoints, environment=Environment, events=tuple)
# Written by the queue alone.
_COUNTERS = ("failing_since", "successful", "failed", "concurrency")
_ENDPOINTS = ENDPOINT.select("business_id").where(webhook_endpoints.c.removed_at.is_(None))
ENDPOINTS = Statement(
    _ENDPOINTS.order_by(
        webhook_endpoints.c.is_active.desc(), webhook_endpoints.c.created_at.desc(), webhook_endpoints.c.id.desc()
    ).limit(in_text(ENDPOINTS_MAX))
)
SUBSCRIBERS = Statement(
    _ENDPOINTS.where(webhook_endpoints.c.environment == bindparam("environment"), webhook_endpoints.c.is_active)
    .order_by(webhook_endpoints.c.created_at, webhook_endpoints.c.id)
    .limit(in_text(ENDPOINTS_MAX))
)
# Those of a payment's business and environment.
SUBSCRIBERS_TO = Statement(
    select(*ENDPOINT.columns)
    .join(
        payments,
        (payments.c.business_id == webhook_endpoints.c.business_id)
        & (payments.c.environment == webhook_endpoints.c.environment),
    )
    .where(payments.c.reference == bindparam("reference"), webhook_endpoints.c.is_active)
    .order_by(webhook_endpoints.c.created_at, webhook_endpoints.c.id)
    .limit(in_text(ENDPOINTS_MAX))
)
SUBSCRIBERS_OF = Statement(
    select(*ENDPOINT.columns)
    .where(webhook_endpoints.c.business_id == any_(bindparam("business_ids", type_=ARRAY(Text))))
    .where(webhook_endpoints.c.is_active)
    .order_by(webhook_endpoints.c.created_at, webhook_endpoints.c.id)
)
_ENDPOINT = _ENDPOINTS.where(webhook_endpoints.c.id == bindparam("id"))
FIND_ENDPOINT = Statement(_ENDPOINT)
LOCK_ENDPOINT = Statement(_ENDPOINT.with_for_update())
ADD_ENDPOINT = Statement(ENDPOINT.insert())
# The right-hand sides see the row as it was: a new address or an activation starts a new run of failures.
_RESTARTED = or_(
    webhook_endpoints.c.url != bindparam("url"),
    and_(not_(webhook_endpoints.c.is_active), bindparam("is_active", type_=Boolean)),
)
SAVE_ENDPOINT = Statement(
    ENDPOINT.update(*(name for name in ENDPOINT.names if name not in _COUNTERS)).values(
        failing_since=case((_RESTARTED, null()), else_=webhook_endpoints.c.failing_since)
    )
)
REMOVE_ENDPOINT = Statement(
    update(webhook_endpoints)
    .where(webhook_endpoints.c.id == bindparam("endpoint_id"))
    .values(is_active=False, removed_at=bindparam("now"), updated_at=bindparam("now"))
)


class PostgresEndpoints(PostgresRepository):
    async def of_business(self, business_id: str) -> list[WebhookEndpoint]:
        found = ENDPOINT.all(await self._connection.rows(ENDPOINTS, business_id=business_id))
        return sorted(found, key=lambda endpoint: (endpoint.created_at, endpoint.id))

    async def subscribers(self, business_id: str, environment: Environment) -> list[WebhookEndpoint]:
        values = {"business_id": business_id, "environment": environment.value}
        return ENDPOINT.all(await self._connection.rows(SUBSCRIBERS, **values))

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[WebhookEndpoint]]:
        business_ids = sorted({business_id for business_id, _ in owners})
        found: dict[tuple[str, Environment], list[WebhookEndpoint]] = {}
        for endpoint in ENDPOINT.all(await self._connection.rows(SUBSCRIBERS_OF, business_ids=business_ids)):
            found.setdefault((endpoint.business_id, endpoint.environment), []).append(endpoint)
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
