"""Anomalies as rows."""

from typing import Any

from sqlalchemy import Select, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.repositories.rows import RowMap, stored
from payagg.adapters.postgres.schema.tables import anomalies
from payagg.application.ports import AnomalyFilter
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus

ANOMALY = RowMap(Anomaly, anomalies, kind=AnomalyKind, status=AnomalyStatus)
OF_PAYMENT_MAX = 1_000
# The words of the partial index: only with them does the plan know that it fits.
UNCLOSED = text("anomalies.status <> 'CLOSED'")
# What people do about one; the rest is fixed, and the database says so too.
MOVING = ("status", "acknowledged_by", "acknowledged_at", "closed_by", "closed_at", "close_reason")


class PostgresAnomalies:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, anomaly: Anomaly) -> None:
        values = {**ANOMALY.values(anomaly), "details": dict(anomaly.details)}
        await self._connection.execute(insert(anomalies).values(values))

    async def of_payment(self, reference: str) -> list[Anomaly]:
        query = select(*ANOMALY.columns).where(anomalies.c.reference == reference)
        return await self._found(query.order_by(anomalies.c.id.desc()).limit(OF_PAYMENT_MAX))

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        found = await self._found(select(*ANOMALY.columns).where(anomalies.c.id == anomaly_id).with_for_update())
        return found[0] if found else None

    async def save(self, anomaly: Anomaly) -> None:
        values = {name: stored(getattr(anomaly, name)) for name in MOVING}
        await self._connection.execute(update(anomalies).where(anomalies.c.id == anomaly.id).values(values))

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        own = anomalies.c
        query = select(*ANOMALY.columns)
        if wanted.status is not None:
            query = query.where(own.status == wanted.status.value)
            if wanted.status is not AnomalyStatus.CLOSED:
                query = query.where(UNCLOSED)
        if wanted.kind is not None:
            query = query.where(own.kind == wanted.kind.value)
        if wanted.reference is not None:
            query = query.where(own.reference == wanted.reference)
        if wanted.after is not None:
            query = query.where(own.id < wanted.after)
        return await self._found(query.order_by(own.id.desc()).limit(limit))

    async def unclosed(self) -> dict[AnomalyKind, int]:
        own = anomalies.c
        query = select(own.kind, func.count()).where(UNCLOSED).group_by(own.kind)
        return {AnomalyKind(kind): count for kind, count in await self._connection.execute(query)}

    async def _found(self, query: "Select[Any]") -> list[Anomaly]:
        return [ANOMALY.load(row) for row in await self._connection.execute(query)]
