"""Anomalies as rows, and adjustments: what became of money that was paid, by the latest notified fact of each."""

# ruff: noqa: S608 - only our own words are put into the texts

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.schema.tables import MAY_END, MAY_NEED_ATTENTION
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.reports import AdjustmentFilter, AnomalyFilter
from payagg.domain.adjustment import Adjustment, AdjustmentTotal, added_up, adjustments_of
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.payment_search import EARLIEST, LATEST, PaymentFilter
from payagg.domain.values import Environment

ANOMALY = RowMap(Anomaly, "anomalies", kind=AnomalyKind, status=AnomalyStatus, environment=Environment, notes=tuple)
OF_PAYMENT_MAX = 1_000
PAST_ANOMALIES = "anm_g"  # above every id
# The partial index's text: only then does the planner use it.
UNCLOSED = "status <> 'CLOSED'"
# What people may change; the rest is fixed, by the database too.
MOVING = ("status", "acknowledged_by", "acknowledged_at", "closed_by", "closed_at", "close_reason", "assignee", "notes")

ADD = Statement(ANOMALY.insert())
LAST = Statement("SELECT id FROM anomalies ORDER BY id DESC LIMIT 1")
OF_PAYMENT = ANOMALY.query(f"WHERE reference = :reference ORDER BY id DESC LIMIT {OF_PAYMENT_MAX}")
OF_PAYMENTS = Statement(f"""
    SELECT {", ".join(f"own.{name}" for name in ANOMALY.names)}
    FROM unnest(CAST(:references AS text[])) AS wanted (reference)
    CROSS JOIN LATERAL (
        SELECT * FROM anomalies a WHERE a.reference = wanted.reference ORDER BY a.id DESC LIMIT {OF_PAYMENT_MAX}
    ) own
    """)
LOCK = ANOMALY.query("WHERE id = :id FOR UPDATE")
SAVE = Statement(ANOMALY.update(*MOVING))
NOTIFY = Statement(ANOMALY.update("event_sequence"))
COUNT_UNCLOSED = Statement(f"SELECT kind, environment, count(*) FROM anomalies WHERE {UNCLOSED} GROUP BY 1, 2")


@cache
def _page(
    status: AnomalyStatus | None, of_kinds: bool, of_payment: bool, of_assignee: bool, is_after: bool
) -> Statement:
    conditions = {
        f"status = '{status.value if status else ''}'": status is not None,
        UNCLOSED: status in (AnomalyStatus.OPEN, AnomalyStatus.ACKNOWLEDGED),
        "kind = ANY(:kinds)": of_kinds,
        "reference = :reference": of_payment,
        "assignee = :assignee": of_assignee,
        "id < :after": is_after,
    }
    wanted = " AND ".join(["true", *(words for words, is_wanted in conditions.items() if is_wanted)])
    return ANOMALY.query(f"WHERE {wanted} ORDER BY id DESC LIMIT :limit")


@cache
def _forget(limit: int) -> Statement:
    return Statement(f"""
DELETE FROM anomalies WHERE id = ANY(ARRAY(
    SELECT id FROM anomalies WHERE {MAY_END} AND closed_at < CAST(:before AS TIMESTAMPTZ)
    ORDER BY closed_at LIMIT {limit:d} FOR UPDATE SKIP LOCKED
)) RETURNING id
""")


class PostgresAnomalies(PostgresRepository):
    async def add(self, anomaly: Anomaly) -> None:
        self._connection.send(ADD, **ANOMALY.values(anomaly))

    async def last_id(self) -> str | None:
        return await self._connection.value(LAST)

    async def of_payment(self, reference: str) -> list[Anomaly]:
        return ANOMALY.all(await self._connection.rows(OF_PAYMENT, reference=reference))

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        return ANOMALY.all(await self._connection.rows(OF_PAYMENTS, references=list(references)))

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        return ANOMALY.from_row(await self._connection.row(LOCK, id=anomaly_id))

    async def save(self, anomaly: Anomaly) -> None:
        self._connection.send(SAVE, **ANOMALY.values(anomaly))

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        self._connection.send(NOTIFY, id=anomaly_id, event_sequence=sequence)

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


# The rules of `payagg.domain.adjustment` for one payment's anomalies, as SQL over rows; the contract suite compares
# both. A dispute counts by its latest end, before one by its opening; a mismatch only when money came.
_IS_ADJUSTMENT = """
    a.event_sequence IS NOT NULL
    AND (a.kind IN ('LATE_REVERSAL', 'PARTIAL_REFUND', 'LATE_SUCCESS', 'SECOND_CHARGE')
         OR (a.kind IN ('MISMATCH', 'NO_EVIDENCE') AND a.details ? 'reason')
         OR (a.kind = 'DISPUTE' AND (coalesce(a.details ->> 'disputeId', '') = '' OR NOT EXISTS (
             SELECT FROM anomalies other
             WHERE other.reference = a.reference AND other.kind = 'DISPUTE'
             AND other.event_sequence IS NOT NULL AND other.details ->> 'disputeId' = a.details ->> 'disputeId'
             AND CASE WHEN other.details ->> 'state' = 'opened'
                      THEN a.details ->> 'state' = 'opened' AND other.id < a.id
                      ELSE a.details ->> 'state' = 'opened' OR other.id > a.id END))))
"""
_COLUMNS = ", ".join(f"a.{name}" for name in ANOMALY.names)
# The condition repeats the partial index's text: only then does the planner use it.
_NEEDS_ATTENTION = f"""
    a.{MAY_NEED_ATTENTION}
    AND CASE WHEN a.kind = 'DISPUTE' THEN a.details ->> 'state' = 'opened' ELSE a.status <> 'CLOSED' END
"""
_AMOUNT = """
    CASE WHEN a.kind IN ('MISMATCH', 'NO_EVIDENCE')
         THEN CASE WHEN a.details ->> 'reason' <> 'CURRENCY_MISMATCH' THEN CAST(a.details ->> 'received' AS numeric) END
         ELSE coalesce(
             CAST(a.details ->> 'amount' AS numeric),
             CASE WHEN a.details -> 'amounts' @> to_jsonb(p.amount) THEN p.amount ELSE (
                 SELECT max(CAST(one AS numeric)) FROM jsonb_array_elements_text(a.details -> 'amounts') one) END,
             CASE WHEN a.kind = 'DISPUTE' THEN p.amount END)
    END
"""
# What the status says came and went back, unless a charge brought it that paid beside the one that was reversed.
_IS_IN_STATUS = """
    p.status = 'REVERSED' AND NOT EXISTS (
        SELECT FROM anomalies second WHERE second.reference = a.reference AND second.kind = 'SECOND_CHARGE'
        AND second.details ->> 'providerReference' = a.details ->> 'providerReference')
"""


@cache
def _adjustment_page(needs_attention: bool) -> Statement:
    """Anomalies with the amounts of their payments, newest first."""
    return Statement(f"""
        SELECT {_COLUMNS}, p.amount FROM anomalies a JOIN payments p ON p.reference = a.reference
        WHERE a.business_id = :business_id AND a.environment = :environment
        AND a.id < :after
        AND {_NEEDS_ATTENTION if needs_attention else "true"}
        AND {_IS_ADJUSTMENT}
        ORDER BY a.id DESC LIMIT CAST(:limit AS integer)
        """)


@cache
def _totals(has_business: bool) -> Statement:
    """By day, kind of anomaly, state and whether a REVERSED status says it already. The days bound the read by `at`:
    after a clock that was ahead, ids go on from the days ahead. LIMIT keeps the look-up of a payment a look-up."""
    return Statement(f"""
        SELECT CAST(timezone('UTC', a.at) AS date), a.kind, coalesce(a.details ->> 'state', ''),
               {_IS_IN_STATUS}, count(*), coalesce(sum({_AMOUNT}), 0)
        FROM anomalies a
        CROSS JOIN LATERAL (SELECT amount, status FROM payments WHERE reference = a.reference LIMIT 1) p
        WHERE {"a.business_id = :business_id" if has_business else "true"}
        AND a.environment = ANY (CAST(:environments AS text[]))
        AND a.at >= CAST(:since AS timestamptz) AND a.at < CAST(:until AS timestamptz)
        AND {_IS_ADJUSTMENT}
        GROUP BY 1, 2, 3, 4
        """)


class PostgresAdjustments(PostgresRepository):
    async def page(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        rows = await self._connection.rows(
            _adjustment_page(wanted.needs_attention),
            business_id=wanted.business_id,
            environment=wanted.environment.value,
            after=wanted.after or PAST_ANOMALIES,
            limit=limit,
        )
        return [one for row in rows for one in adjustments_of([ANOMALY.load(row[:-1])], row[-1])]

    async def totals(self, wanted: PaymentFilter) -> list[AdjustmentTotal]:
        rows = await self._connection.rows(
            _totals(wanted.business_id is not None),
            business_id=wanted.business_id,
            environments=[one.value for one in Environment if wanted.environment in (None, one)],
            since=wanted.since or EARLIEST,
            until=wanted.until or LATEST,
        )
        return added_up((day, AnomalyKind(kind), *own, count, int(amount)) for day, kind, *own, count, amount in rows)
