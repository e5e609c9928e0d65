"""Anomalies as rows."""

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ARRAY, Text, any_, bindparam, func, select, text, true, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.rows import RowMap, in_text, parameters
from payagg.adapters.postgres.schema.payments import MAY_END, anomalies
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.reports import AnomalyFilter
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.values import Environment


class _AnomalyMap(RowMap[Anomaly]):
    """JSON has lists; an anomaly has a tuple of notes."""

    def load(self, row: Any) -> Anomaly:
        values = list(row)
        values[_NOTES] = tuple(values[_NOTES])
        return super().load(values)


ANOMALY = _AnomalyMap(Anomaly, anomalies, kind=AnomalyKind, status=AnomalyStatus, environment=Environment)
_NOTES = ANOMALY.names.index("notes")
OF_PAYMENT_MAX = 1_000
# The partial index's text: only then does the planner use it.
UNCLOSED = text("anomalies.status <> 'CLOSED'")
# What people may change; the rest is fixed, by the database too.
MOVING = ("status", "acknowledged_by", "acknowledged_at", "closed_by", "closed_at", "close_reason", "assignee", "notes")

ADD = Statement(insert(anomalies).values(parameters(*ANOMALY.names)))
LAST = Statement(select(anomalies.c.id).order_by(anomalies.c.id.desc()).limit(in_text(1)), reads=True)
OF_PAYMENT = Statement(
    select(*ANOMALY.columns)
    .where(anomalies.c.reference == bindparam("reference"))
    .order_by(anomalies.c.id.desc())
    .limit(in_text(OF_PAYMENT_MAX))
)
OF_PAYMENTS = Statement(
    f"""
    SELECT {", ".join(f"own.{name}" for name in ANOMALY.names)}
    FROM unnest(CAST(:references AS text[])) AS wanted (reference)
    CROSS JOIN LATERAL (
        SELECT * FROM anomalies a WHERE a.reference = wanted.reference ORDER BY a.id DESC LIMIT {OF_PAYMENT_MAX}
    ) own
    """,  # noqa: S608 - our own names
    reads=True,
)
LOCK = Statement(select(*ANOMALY.columns).where(anomalies.c.id == bindparam("id")).with_for_update())
SAVE = Statement(update(anomalies).where(anomalies.c.id == bindparam("id")).values(parameters(*MOVING)))
NOTIFY = Statement(
    update(anomalies).where(anomalies.c.id == bindparam("id")).values(event_sequence=bindparam("sequence"))
)
_BY = (anomalies.c.kind, anomalies.c.environment)
COUNT_UNCLOSED = Statement(select(*_BY, func.count()).where(UNCLOSED).group_by(*_BY))


@cache
def _page(
    status: AnomalyStatus | None, of_kinds: bool, of_payment: bool, of_assignee: bool, is_after: bool
) -> Statement:
    own = anomalies.c
    query = select(*ANOMALY.columns)
    if status is not None:
        query = query.where(own.status == in_text(status.value))
        if status is not AnomalyStatus.CLOSED:
            query = query.where(UNCLOSED)
    return Statement(
        query.where(own.kind == any_(bindparam("kinds", type_=ARRAY(Text))) if of_kinds else true())
        .where(own.reference == bindparam("reference") if of_payment else true())
        .where(own.assignee == bindparam("assignee") if of_assignee else true())
        .where(own.id < bindparam("after") if is_after else true())
        .order_by(own.id.desc())
        .limit(bindparam("limit"))
    )


@cache
def _forget(limit: int) -> Statement:
    return Statement(f"""
DELETE FROM anomalies WHERE id = ANY(ARRAY(
    SELECT id FROM anomalies WHERE {MAY_END} AND closed_at < CAST(:before AS TIMESTAMPTZ)
    ORDER BY closed_at LIMIT {limit:d} FOR UPDATE SKIP LOCKED
)) RETURNING id
""")  # noqa: S608 - our own words and number


class PostgresAnomalies:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection

    async def add(self, anomaly: Anomaly) -> None:
        json = {"details": dict(anomaly.details), "notes": [dict(note) for note in anomaly.notes]}
        self._connection.send(ADD, **{**ANOMALY.values(anomaly), **json})

    async def last_id(self) -> str | None:
        return await self._connection.value(LAST)

    async def of_payment(self, reference: str) -> list[Anomaly]:
        return ANOMALY.all(await self._connection.rows(OF_PAYMENT, reference=reference))

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        return ANOMALY.all(await self._connection.rows(OF_PAYMENTS, references=list(references)))

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        return ANOMALY.from_row(await self._connection.row(LOCK, id=anomaly_id))

    async def save(self, anomaly: Anomaly) -> None:
        notes = [dict(note) for note in anomaly.notes]
        self._connection.send(SAVE, **ANOMALY.values(anomaly) | {"notes": notes})

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        self._connection.send(NOTIFY, id=anomaly_id, sequence=sequence)

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        kinds = None if wanted.kinds is None else [kind.value for kind in wanted.kinds]
        values: dict[str, Any] = {"kinds": kinds, "reference": wanted.reference, "assignee": wanted.assignee}
        values["after"] = wanted.after
        page = _page(wanted.status, *(value is not None for value in values.values()))
        return ANOMALY.all(await self._connection.rows(page, limit=limit, **values))

    async def count_open(self) -> dict[tuple[AnomalyKind, Environment | None], int]:
        rows = await self._connection.rows(COUNT_UNCLOSED)
        return {(AnomalyKind(kind), Environment(place) if place else None): count for kind, place, count in rows}

    async def forget(self, before: datetime, limit: int) -> int:
        return len(await self._connection.rows(_forget(limit), before=before))
