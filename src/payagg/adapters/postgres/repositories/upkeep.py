"""What upkeep needs, as rows: payments to expire, payers to erase, instants of a clock that was ahead, sealed data."""

# ruff: noqa: S608 - our own words

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from payagg.adapters.postgres.repositories.payments import PAYMENT
from payagg.adapters.postgres.repositories.rows import PostgresRepository
from payagg.adapters.postgres.schema.tables import HAS_PAYER, IS_UNSETTLED
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.providers import LONGEST_RETRY
from payagg.application.ports.upkeep import SealedBlob, SealedKind
from payagg.domain.attempt import LEASE, LONGEST_CHECK
from payagg.domain.delivery import LONGEST_DELAY
from payagg.domain.payment import PAYER_FIELDS, Payment
from payagg.domain.payment_search import EARLIEST
from payagg.domain.values import CLOCK_SLACK

# A payment may be committed after its window has closed, where windows are short: by so much at most, as every
# transaction of ours ends before.
LATE_MAX = timedelta(seconds=30)
PROGRESS = Statement("SELECT until FROM expiry_progress")
# Hidden from the planner: by its statistics of a time when nothing was INITIATED it would read the whole table.
_IS_INITIATED = "status = (SELECT 'INITIATED')"
# From the last payment that may be passed by to the one before the first that is still INITIATED, locked or not. Never
# by the clock alone, which may have been ahead. Where payments were dated by such a clock and are over, it has come to
# where those that are initiated now are yet to end: then a day is looked through again, as the worker may have been
# away since the clock was set back. One sweep at a time; the others leave it as it is.
ADVANCE = Statement("""
WITH progress AS MATERIALIZED (
    SELECT CASE WHEN until > :now THEN CAST(:now AS timestamptz) - interval '1 day' ELSE until END AS until
    FROM expiry_progress FOR UPDATE SKIP LOCKED
)
UPDATE expiry_progress SET until = coalesce(
    (SELECT expires_at - interval '1 microsecond' FROM payments
     WHERE expires_at > (SELECT until FROM progress) AND expires_at <= :passed AND status = (SELECT 'INITIATED')
     ORDER BY expires_at LIMIT 1),
    (SELECT expires_at FROM payments
     WHERE expires_at > (SELECT until FROM progress) AND expires_at <= :passed ORDER BY expires_at DESC LIMIT 1),
    (SELECT until FROM progress)
) WHERE EXISTS (SELECT FROM progress)
""")
EXPIRED = PAYMENT.query(f"""
WHERE {_IS_INITIATED} AND expires_at > :until AND expires_at <= :now
ORDER BY expires_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
""")
INITIATED = PAYMENT.query(f"""
WHERE {_IS_INITIATED} AND (expires_at, reference) > (:until, :reference) ORDER BY expires_at, reference LIMIT :limit
""")


# Of the reference: a payment ends on that day or later.
_DAY = "substr(reference, 5, 8)"


@cache
def _settled_with_payer(limit: int) -> Statement:
    return Statement(f"""
    SELECT reference FROM payments WHERE ({HAS_PAYER}) AND {_DAY} <= :day AND settled_at < :before
    ORDER BY {_DAY} LIMIT {limit:d} FOR NO KEY UPDATE SKIP LOCKED
    """)


# A walk in bounded steps: an index for what is asked once a year would cost every initiation.
OF_PAYER = Statement("""
SELECT array_agg(reference) FILTER (WHERE lower(customer_email) = lower(CAST(:email AS text))), max(reference)
FROM (SELECT reference, customer_email FROM payments WHERE reference > :after ORDER BY reference LIMIT :limit) AS step
""")
CLEAR_PAYER = Statement(f"""
UPDATE payments SET {", ".join(f"{name} = NULL" for name in (*PAYER_FIELDS, "fingerprint"))}
WHERE reference = ANY(:references)
""")
CLEAR_HAND_OFF = Statement(
    "UPDATE attempts SET hand_off_url = '' WHERE reference = ANY(:references) AND hand_off_url <> ''"
)


# By the day in their references, which many keys share, so that its index takes a few bytes for each. LIMIT keeps the
# look-up of a payment a look-up. Keys of payments that are still open are met again each time: after years, few.
@cache
def _forget_keys(limit: int) -> Statement:
    return Statement(f"""
WITH old AS (
    SELECT k.business_id, k.environment, k.key FROM idempotency_keys k
    JOIN LATERAL (SELECT settled_at FROM payments WHERE reference = k.reference LIMIT 1) p ON p.settled_at < :before
    WHERE substr(k.reference, 5, 8) <= :day
    ORDER BY substr(k.reference, 5, 8) LIMIT {limit:d} FOR UPDATE OF k SKIP LOCKED
)
DELETE FROM idempotency_keys k USING old
WHERE k.business_id = old.business_id AND k.environment = old.environment AND k.key = old.key RETURNING k.reference
""")


AT_ONCE = 500  # a number and no parameter: not knowing how few, the server would join all of the table
# The doctor looks for the same. Of what waits: its past lies ahead, or its end further ahead than a rule puts it.
# `last` is the greatest instant that may be past.
IS_CHECK_AHEAD = """next_ask_at > :last
    AND (greatest(created_at, handed_off_at, last_ask_at) > :last OR next_ask_at > :furthest_check)"""
IS_DELIVERY_AHEAD = """next_attempt_at > :last
    AND (greatest(created_at, last_attempt_at) > :last OR next_attempt_at > :furthest_delivery)"""
IS_EVENT_AHEAD = "next_attempt_at > :last AND (received_at > :last OR next_attempt_at > :furthest_event)"


def bounds(now: datetime) -> dict[str, Any]:
    last = now + CLOCK_SLACK
    return {
        "last": last,
        "furthest_check": last + LONGEST_CHECK,
        "furthest_delivery": last + LONGEST_DELAY,
        "furthest_event": last + LONGEST_RETRY,
    }


# A walk in bounded steps: an index of its own would cost every charge. The simulator's asks, which have no gateway, and
# those about charges that were paid keep their dates: nobody waits for them.
ASKS_BACK = Statement(f"""
WITH step AS (
    SELECT reference, number, gateway_id, {IS_CHECK_AHEAD} AS is_ahead FROM attempts
    WHERE {IS_UNSETTLED} AND (gateway_id, reference) > (:gateway_id, :reference)
    ORDER BY gateway_id, reference LIMIT {AT_ONCE}
), pulled AS (
    UPDATE attempts a SET created_at = least(a.created_at, :now), lease_until = least(a.lease_until, :lease_end),
        handed_off_at = CASE WHEN a.handed_off_at > :now THEN :now ELSE a.handed_off_at END,
        last_ask_at = CASE WHEN a.last_ask_at > :now THEN :now ELSE a.last_ask_at END,
        next_ask_at = :now, held_until = NULL
    FROM step s WHERE s.is_ahead AND a.reference = s.reference AND a.number = s.number RETURNING 1
)
SELECT (SELECT count(*) FROM pulled), (SELECT count(*) FROM step), gateway_id || ' ' || reference
FROM step ORDER BY gateway_id DESC, reference DESC LIMIT 1
""")
# In an order, though any one will do: it leads by the index.
DELIVERIES_BACK = Statement(f"""
WITH ahead AS (
    SELECT reference, id FROM deliveries WHERE {IS_DELIVERY_AHEAD}
    ORDER BY next_attempt_at LIMIT {AT_ONCE} FOR NO KEY UPDATE SKIP LOCKED
), pulled AS (
    UPDATE deliveries d SET created_at = least(d.created_at, :now), next_attempt_at = :now,
        last_attempt_at = CASE WHEN d.last_attempt_at > :now THEN :now ELSE d.last_attempt_at END,
        lease_until = CASE WHEN d.lease_until > :now THEN :now ELSE d.lease_until END
    FROM ahead WHERE d.reference = ahead.reference AND d.id = ahead.id RETURNING 1
)
SELECT count(*) FROM pulled
""")
EVENTS_BACK = Statement(f"""
WITH ahead AS (
    SELECT id FROM inbox WHERE {IS_EVENT_AHEAD}
    ORDER BY next_attempt_at LIMIT {AT_ONCE} FOR NO KEY UPDATE SKIP LOCKED
), pulled AS (
    UPDATE inbox i SET received_at = least(i.received_at, :now), next_attempt_at = :now
    WHERE i.id = ANY(ARRAY(SELECT id FROM ahead)) RETURNING 1
)
SELECT count(*) FROM pulled
""")
# A day that was reconciled before it was over, by a clock that was ahead, is anybody's again.
CLAIMS_BACK = Statement("""
WITH pulled AS (
    UPDATE reconciliation_runs SET claim = NULL WHERE claim IS NOT NULL AND started_at > :last RETURNING 1
)
SELECT count(*) FROM pulled
""")


COLUMNS = {
    SealedKind.GATEWAY_CREDENTIALS: ("gateways", "credentials"),
    SealedKind.REPLACED_SECRETS: ("gateways", "replaced_secrets"),
    SealedKind.ENDPOINT_CURRENT: ("webhook_endpoints", "secret"),
    SealedKind.ENDPOINT_PREVIOUS: ("webhook_endpoints", "previous_secret"),
}
PAGE = {
    kind: Statement(f"SELECT id, {own} FROM {table} WHERE id > :after AND {own} IS NOT NULL ORDER BY id LIMIT :limit")
    for kind, (table, own) in COLUMNS.items()
}
# Under the row's lock the condition sees what was committed last, so that a change of the same moment stays.
REPLACE = {
    kind: Statement(f"UPDATE {table} SET {own} = :resealed WHERE id = :owner_id AND {own} = :before RETURNING id")
    for kind, (table, own) in COLUMNS.items()
}


class PostgresUpkeep(PostgresRepository):
    async def lock_expired(self, now: datetime, limit: int) -> list[Payment]:
        self._connection.send(ADVANCE, now=now, passed=now - LATE_MAX)
        # A value, as the planner knows nothing of what a subquery finds. Without the row: from the beginning.
        until = await self._connection.value(PROGRESS) or EARLIEST
        return PAYMENT.all(await self._connection.rows(EXPIRED, until=until, now=now, limit=limit))

    async def list_initiated(self, until: datetime, reference: str, limit: int) -> list[Payment]:
        return PAYMENT.all(await self._connection.rows(INITIATED, until=until, reference=reference, limit=limit))

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        rows = await self._connection.rows(_settled_with_payer(limit), before=before, day=f"{before:%Y%m%d}")
        return [row[0] for row in rows]

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        [(found, last)] = await self._connection.rows(OF_PAYER, email=email, after=after, limit=limit)
        return sorted(found or ()), last

    async def clear_payer(self, references: Sequence[str]) -> None:
        self._connection.send(CLEAR_PAYER, references=list(references))
        self._connection.send(CLEAR_HAND_OFF, references=list(references))

    async def forget_keys(self, before: datetime, limit: int) -> int:
        return len(await self._connection.rows(_forget_keys(limit), before=before, day=f"{before:%Y%m%d}"))

    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        values = {"now": now, "lease_end": now + LEASE, **bounds(now)}
        pulled, walked, last = 0, 0, None
        gateway_id, _, reference = after.partition(" ")
        for row in await self._connection.rows(ASKS_BACK, **values, gateway_id=gateway_id, reference=reference):
            pulled, walked, last = row
        if not after:
            for statement in (DELIVERIES_BACK, EVENTS_BACK, CLAIMS_BACK):
                pulled += await self._connection.value(statement, **values) or 0
        return pulled, last if walked == AT_ONCE else None

    async def sealed_blobs(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        rows = await self._connection.rows(PAGE[kind], after=after, limit=limit)
        return [SealedBlob(id, blob) for id, blob in rows]

    async def reseal(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        values = {"owner_id": owner_id, "before": before, "resealed": after}
        return await self._connection.row(REPLACE[kind], **values) is not None
