"""Due instants written while the database's clock was ahead, as rows; the doctor looks for the same ones."""

# ruff: noqa: S608 - our own words

from datetime import datetime
from typing import Any

from payagg.adapters.postgres.repositories.rows import PostgresRepository
from payagg.adapters.postgres.schema.payments import IS_UNSETTLED
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.provider_events import LONGEST_RETRY
from payagg.domain.attempt import LEASE, LONGEST_CHECK
from payagg.domain.values import CLOCK_SLACK
from payagg.domain.webhook import LONGEST_DELAY

AT_ONCE = 500  # a number and no parameter: not knowing how few, the server would join all of the table
# Of what waits: its past lies ahead, or its end further ahead than a rule puts it. `last` is the greatest instant that
# may be past.
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


class PostgresFutureInstants(PostgresRepository):
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
