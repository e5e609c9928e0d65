"""Anomalies as rows."""

from functools import cache

from sqlalchemy import bindparam, func, select, text, true, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.rows import RowMap, in_text, parameters, stored
from payagg.adapters.postgres.schema.tables import anomalies
from payagg.adapters.postgres.statement import Statement
from payagg.application.repositories import AnomalyFilter
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus

ANOMALY = RowMap(Anomaly, anomalies, kind=AnomalyKind, status=AnomalyStatus)
OF_PAYMENT_MAX = 1_000
# The words of the partial index: only with them does the plan know that it fits.
UNCLOSED = text("anomalies.status <> 'CLOSED'")
# What people do about one; the rest is fixed, and the database says so too.
MOVING = ("status", "acknowledged_by", "acknowledged_at", "closed_by", "closed_at", "close_reason")

ADD = Statement(insert(anomalies).values(parameters(*ANOMALY.names)))
OF_PAYMENT = Statement(
    select(*ANOMALY.columns)
    .where(anomalies.c.reference == bindparam("reference"))
    .order_by(anomalies.c.id.desc())
    .limit(in_text(OF_PAYMENT_MAX))
)
LOCK = Statement(select(*ANOMALY.columns).where(anomalies.c.id == bindparam("id")).with_for_update())
SAVE = Statement(update(anomalies).where(anomalies.c.id == bindparam("id")).values(parameters(*MOVING)))
COUNT_UNCLOSED = Statement(select(anomalies.c.kind, func.count()).where(UNCLOSED).group_by(anomalies.c.kind))


@cache
def _page(status: AnomalyStatus | None, of_kind: bool, of_payment: bool, is_after: bool) -> Statement:
    own = anomalies.c
    query = select(*ANOMALY.columns)
    if status is not None:
        query = query.where(own.status == in_text(status.value))
        if status is not AnomalyStatus.CLOSED:
            query = query.where(UNCLOSED)
    return Statement(
        query.where(own.kind == bindparam("kind") if of_kind else true())
        .where(own.reference == bindparam("reference") if of_payment else true())
        .where(own.id < bindparam("after") if is_after else true())
        .order_by(own.id.desc())
        .limit(bindparam("limit"))
    )


class PostgresAnomalies:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection

    async def add(self, anomaly: Anomaly) -> None:
        self._connection.send(ADD, **{**ANOMALY.values(anomaly), "details": dict(anomaly.details)})

    async def of_payment(self, reference: str) -> list[Anomaly]:
        return ANOMALY.all(await self._connection.rows(OF_PAYMENT, reference=reference))

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        return ANOMALY.loaded(await self._connection.row(LOCK, id=anomaly_id))

    async def save(self, anomaly: Anomaly) -> None:
        values = {name: stored(getattr(anomaly, name)) for name in MOVING}
        self._connection.send(SAVE, id=anomaly.id, **values)

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        values = {"kind": stored(wanted.kind), "reference": wanted.reference, "after": wanted.after}
        page = _page(wanted.status, *(value is not None for value in values.values()))
        return ANOMALY.all(await self._connection.rows(page, limit=limit, **values))

    async def unclosed(self) -> dict[AnomalyKind, int]:
        return {AnomalyKind(kind): count for kind, count in await self._connection.rows(COUNT_UNCLOSED)}
