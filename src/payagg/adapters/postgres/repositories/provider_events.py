"""Inbound events and provider health as rows."""

# ruff: noqa: S608 - our own words

from datetime import datetime
from functools import cache
from typing import Any

from payagg.adapters.postgres.fast_path.batching import Batch, Note
from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.repositories.webhook_events import id_at
from payagg.adapters.postgres.schema.tables import HAS_BODY
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.providers import ProviderEvent, RefusedEvent, SignatureFault
from payagg.domain.health import Health
from payagg.domain.values import Environment

EVENT = RowMap(ProviderEvent, "inbox", environment=Environment)
REFUSED = RowMap(RefusedEvent, "refused_events", environment=Environment, fault=SignatureFault)
HEALTH = RowMap(Health, "provider_health", environment=Environment)
REFUSED_MAX = 1_000
HEALTH_ROWS_MAX = 1_000  # gateways with a processor, twice

ADD = Statement(EVENT.insert().on_conflict_do_nothing().returning(EVENT.table.c.id))
LOCK_DUE = EVENT.query("WHERE next_attempt_at <= :now ORDER BY next_attempt_at LIMIT :limit FOR UPDATE SKIP LOCKED")
COUNT_DUE = Statement("SELECT count(*) FROM (SELECT FROM inbox WHERE next_attempt_at <= :now LIMIT :most) AS due")
SAVE = Statement(EVENT.update("attempts", "next_attempt_at", "handled_at", "result"))
KEEP_REFUSED = Statement(REFUSED.upsert("provider", "environment", "fault", "slot"))
ALL_REFUSED = REFUSED.query(f"ORDER BY received_at DESC LIMIT {REFUSED_MAX}")
PURGE_REFUSED = Statement("DELETE FROM refused_events WHERE received_at <= :before RETURNING slot")


@cache
def _with_body(limit: int) -> Statement:
    return Statement(f"""
    SELECT id FROM inbox WHERE {HAS_BODY} AND handled_at < :before
    ORDER BY handled_at, id LIMIT {limit:d} FOR UPDATE SKIP LOCKED
    """)


EMPTY = Statement("UPDATE inbox SET body = '' WHERE id = ANY(:ids) RETURNING id")
# By the ids, which are in the order of time: no index beyond that of the key.
STEP = Statement("SELECT id FROM inbox WHERE id < :before AND id > :after ORDER BY id LIMIT :limit")
REMOVE = Statement("DELETE FROM inbox WHERE id = ANY(:ids) AND handled_at IS NOT NULL RETURNING id")

ALL_HEALTH = HEALTH.query(f"LIMIT {HEALTH_ROWS_MAX}")
LOCK_HEALTH = HEALTH.query("WHERE gateway = :gateway AND environment = :environment FOR UPDATE")
ADD_HEALTH = Statement(HEALTH.insert().on_conflict_do_nothing())
SAVE_HEALTH = Statement(HEALTH.upsert("gateway", "environment"))


async def keep_refused(notes: Batch[Note, list[Any]], event: RefusedEvent) -> None:
    row = f"refused {event.provider} {event.environment.value} {event.fault.value} {event.slot}"
    await notes.ask(Note(row, KEEP_REFUSED, REFUSED.values(event)))


class PostgresProviderEvents(PostgresRepository):
    async def add(self, event: ProviderEvent) -> bool:
        return await self._connection.row(ADD, **EVENT.values(event)) is not None

    async def lock_due(self, now: datetime, limit: int) -> list[ProviderEvent]:
        return EVENT.all(await self._connection.rows(LOCK_DUE, now=now, limit=limit))

    async def count_due(self, now: datetime, most: int) -> int:
        [(number,)] = await self._connection.rows(COUNT_DUE, now=now, most=most)
        return int(number)

    async def save(self, event: ProviderEvent) -> None:
        self._connection.send(SAVE, **EVENT.values(event))

    async def list_refused(self) -> list[RefusedEvent]:
        return REFUSED.all(await self._connection.rows(ALL_REFUSED))

    async def purge_refused(self, before: datetime) -> int:
        return len(await self._connection.rows(PURGE_REFUSED, before=before))

    async def empty(self, before: datetime, limit: int) -> int:
        ids = [event_id for (event_id,) in await self._connection.rows(_with_body(limit), before=before)]
        return len(await self._connection.rows(EMPTY, ids=ids))

    async def remove(self, before: datetime, after: str, limit: int) -> tuple[int, str | None]:
        rows = await self._connection.rows(STEP, before=id_at("inb", before), after=after, limit=limit)
        walked = [event_id for (event_id,) in rows]
        return len(await self._connection.rows(REMOVE, ids=walked)), walked[-1] if walked else None


class PostgresHealth(PostgresRepository):
    async def all(self) -> list[Health]:
        return HEALTH.all(await self._connection.rows(ALL_HEALTH))

    async def lock(self, gateway: str, environment: Environment) -> Health:
        key = {"gateway": gateway, "environment": environment.value}
        row = await self._connection.row(LOCK_HEALTH, **key)
        if row is None:
            self._connection.send(ADD_HEALTH, **HEALTH.values(Health(gateway, environment)))
            [row] = await self._connection.rows(LOCK_HEALTH, **key)
        return HEALTH.load(row)

    async def save(self, health: Health) -> None:
        self._connection.send(SAVE_HEALTH, **HEALTH.values(health))
