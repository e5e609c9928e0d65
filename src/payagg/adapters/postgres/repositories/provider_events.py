"""Inbound events and provider health as rows."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Row, Text, any_, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.schema.tables import HAS_BODY, inbox, provider_health
from payagg.application.ports import ProviderEvent
from payagg.domain.health import Health
from payagg.domain.values import Environment

HEALTH_ROWS_MAX = 1_000  # gateways with a processor, twice


class PostgresProviderEvents:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, event: ProviderEvent) -> bool:
        statement = insert(inbox).values(**_event_columns(event)).on_conflict_do_nothing().returning(inbox.c.id)
        return (await self._connection.execute(statement)).first() is not None

    async def lock(self, event_id: str) -> ProviderEvent | None:
        # By the key alone: asked for what waits, the server could walk through all that waits instead.
        query = select(inbox).where(inbox.c.id == event_id).with_for_update(skip_locked=True)
        row = (await self._connection.execute(query)).first()
        return _event(row) if row is not None and row.next_attempt_at is not None else None

    async def due(self, now: datetime, limit: int) -> list[str]:
        query = select(inbox.c.id).where(inbox.c.next_attempt_at <= now).order_by(inbox.c.next_attempt_at).limit(limit)
        return [event_id for (event_id,) in await self._connection.execute(query)]

    async def save(self, event: ProviderEvent) -> None:
        changes = {
            "attempts": event.attempts,
            "next_attempt_at": event.next_attempt_at,
            "handled_at": event.handled_at,
            "result": event.result,
        }
        await self._connection.execute(update(inbox).where(inbox.c.id == event.id).values(**changes))

    async def empty(self, before: datetime, limit: int) -> int:
        old = (
            select(inbox.c.id)
            .where(text(HAS_BODY), inbox.c.handled_at < before)
            .order_by(inbox.c.handled_at, inbox.c.id)
            .limit(literal(limit, literal_execute=True))
            .with_for_update(skip_locked=True)
        )
        ids = literal(list((await self._connection.execute(old)).scalars()), ARRAY(Text))
        emptied = update(inbox).where(inbox.c.id == any_(ids)).values(body=b"").returning(inbox.c.id)
        return len((await self._connection.execute(emptied)).all())


class PostgresHealth:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def all(self) -> list[Health]:
        return [_health(row) for row in await self._connection.execute(select(provider_health).limit(HEALTH_ROWS_MAX))]

    async def lock(self, gateway: str, environment: Environment) -> Health:
        query = (
            select(provider_health)
            .where(provider_health.c.gateway == gateway, provider_health.c.environment == environment.value)
            .with_for_update()
        )
        row = (await self._connection.execute(query)).first()
        if row is None:
            fresh = insert(provider_health).values(**_health_columns(Health(gateway, environment)))
            await self._connection.execute(fresh.on_conflict_do_nothing())
            row = (await self._connection.execute(query)).one()
        return _health(row)

    async def save(self, health: Health) -> None:
        columns = _health_columns(health)
        statement = insert(provider_health).values(**columns)
        await self._connection.execute(
            statement.on_conflict_do_update(index_elements=["gateway", "environment"], set_=columns)
        )


def _event_columns(event: ProviderEvent) -> dict[str, Any]:
    return {column.name: getattr(event, column.name) for column in inbox.columns} | {
        "environment": event.environment.value
    }


def _event(row: Row[Any]) -> ProviderEvent:
    fields = {**row._mapping, "environment": Environment(row.environment)}
    return ProviderEvent(**{**fields, "digest": bytes(row.digest), "body": bytes(row.body)})


def _health_columns(health: Health) -> dict[str, Any]:
    return {column.name: getattr(health, column.name) for column in provider_health.columns} | {
        "environment": health.environment.value
    }


def _health(row: Row[Any]) -> Health:
    return Health(**{**row._mapping, "environment": Environment(row.environment)})
