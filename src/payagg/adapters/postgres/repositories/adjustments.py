"""Adjustments by index, over many payments: the anomalies that are the latest notified fact of one, and their sums.

The rules of `payagg.domain.adjustment` for one payment's anomalies, as SQL over rows; the contract suite compares both.
"""
# ruff: noqa: S608 - only our own words are put into the texts

from functools import cache

from payagg.adapters.postgres.repositories.anomalies import ANOMALY
from payagg.adapters.postgres.repositories.rows import PostgresRepository
from payagg.adapters.postgres.schema.payments import MAY_NEED_ATTENTION
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.reports import AdjustmentFilter
from payagg.domain.adjustment import Adjustment, AdjustmentTotal, added_up, adjustments_of
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.payment_search import EARLIEST, LATEST, PaymentFilter
from payagg.domain.values import Environment

# A dispute counts by its latest end, before one by its opening; a mismatch only when money came.
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
def _page(needs_attention: bool, is_after: bool, columns: str) -> Statement:
    """Anomalies with the amounts of their payments, newest first."""
    return Statement(
        f"""
        SELECT {columns}, p.amount FROM anomalies a JOIN payments p ON p.reference = a.reference
        WHERE a.business_id = :business_id AND a.environment = :environment
        AND {"a.id < :after" if is_after else "true"}
        AND {_NEEDS_ATTENTION if needs_attention else "true"}
        AND {_IS_ADJUSTMENT}
        ORDER BY a.id DESC LIMIT CAST(:limit AS integer)
        """,
        reads=True,
    )


@cache
def _totals(has_business: bool) -> Statement:
    """By day, kind of anomaly, state and whether a REVERSED status says it already. The days bound the read by `at`:
    after a clock that was ahead, ids go on from the days ahead. LIMIT keeps the look-up of a payment a look-up."""
    return Statement(
        f"""
        SELECT CAST(timezone('UTC', a.at) AS date), a.kind, coalesce(a.details ->> 'state', ''),
               {_IS_IN_STATUS}, count(*), coalesce(sum({_AMOUNT}), 0)
        FROM anomalies a
        CROSS JOIN LATERAL (SELECT amount, status FROM payments WHERE reference = a.reference LIMIT 1) p
        WHERE {"a.business_id = :business_id" if has_business else "true"}
        AND a.environment = ANY (CAST(:environments AS text[]))
        AND a.at >= CAST(:since AS timestamptz) AND a.at < CAST(:until AS timestamptz)
        AND {_IS_ADJUSTMENT}
        GROUP BY 1, 2, 3, 4
        """,
        reads=True,
    )


class PostgresAdjustments(PostgresRepository):
    async def page(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        rows = await self._connection.rows(
            _page(wanted.needs_attention, wanted.after is not None, _COLUMNS),
            business_id=wanted.business_id,
            environment=wanted.environment.value,
            after=wanted.after,
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
