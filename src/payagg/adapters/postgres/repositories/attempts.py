"""Attempts of payments, by `reference` and number."""

# ruff: noqa: S608 - our own words

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, parameters
from payagg.adapters.postgres.schema.tables import IS_UNSETTLED, attempts, payments
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.outside import Conflict
from payagg.domain.attempt import (
    ATTEMPTS_MAX,
    FIRST_CHECK_MAX,
    HASTEN_PAID,
    Attempt,
    AttemptState,
    HandOff,
    HandOffKind,
)
from payagg.domain.checks import restore
from payagg.domain.rate_limit import EPOCH
from payagg.domain.values import CLOCK_SLACK, Environment

_COLUMNS = tuple(column.name for column in attempts.c)
_OWN = tuple(name for name in _COLUMNS if not name.startswith(("hand_off_", "held_", "environment")))
_LOADED = (*_OWN, "hand_off_kind", "hand_off_url")
_STATES, _KINDS = ({word.value: word for word in kind} for kind in (AttemptState, HandOffKind))
ATTEMPTS = Statement(f"SELECT {', '.join(_LOADED)} FROM attempts WHERE reference = :reference ORDER BY number")
# As the fast path's look-ups of payments: by index, whatever the session's plan expects.
ATTEMPTS_OF = Statement(f"""
SELECT {", ".join(f"a.{name}" for name in _LOADED)}
FROM unnest((SELECT CAST(:references AS text[]))) AS asked (reference)
CROSS JOIN LATERAL (
    SELECT * FROM attempts WHERE attempts.reference = asked.reference ORDER BY number LIMIT {ATTEMPTS_MAX}
) AS a
""")
_ATTEMPT = and_(attempts.c.reference == bindparam("reference"), attempts.c.number == bindparam("number"))
_AT = attempts.c.last_ask_at.type
_OWNED = select(payments.c.environment).where(payments.c.reference == bindparam("reference")).scalar_subquery()
ADD_ATTEMPT = Statement(insert(attempts).values(parameters(*_COLUMNS) | {"environment": func.coalesce(_OWNED, "LIVE")}))
# `begin_check` may have moved `last_ask_at` on since the attempt was read; it never goes back.
_FIXED = {"reference", "number", "environment", "gateway_id", "gateway", "provider_reference", "scenario", "created_at"}
_SAVED = (
    update(attempts)
    .where(_ATTEMPT, attempts.c.token == bindparam("was"))
    .values(
        parameters(*(name for name in _COLUMNS if name not in _FIXED))
        | {"last_ask_at": func.greatest(attempts.c.last_ask_at, bindparam("last_ask_at", type_=_AT))}
    )
    .returning(attempts.c.number)
    .cte("saved")
)
SAVE_ATTEMPT = Statement(must_find(_SAVED))
HASTENED_AT_ONCE = 500
DUE_WINDOW = 1_000  # of what is due, the oldest, from which businesses take turns


def _asks(due: str, conditions: str) -> Statement:
    """Claims the checks due until the instant `due`.

    Among the oldest, businesses take turns. Chosen rows are checked again under their lock, as another worker may have
    taken them. LIMIT keeps the payment's look-up by index, and `coalesce` the lock by key: with the due condition the
    server could walk all due rows once for each. RETURNING has no order.
    """
    return Statement(f"""
WITH oldest AS (
    SELECT a.reference, a.number, a.next_ask_at FROM attempts a
    WHERE a.gateway = :gateway AND a.environment = :environment AND a.next_ask_at <= {due} AND {conditions}
    ORDER BY a.next_ask_at, a.reference LIMIT {DUE_WINDOW}
), turns AS (
    SELECT o.*, row_number() OVER (PARTITION BY p.business_id ORDER BY o.next_ask_at, o.reference) AS turn
    FROM oldest o
    LEFT JOIN LATERAL (SELECT business_id FROM payments WHERE reference = o.reference LIMIT 1) p ON true
), chosen AS (
    SELECT reference, number FROM turns ORDER BY turn, next_ask_at, reference LIMIT :limit
), locked AS (
    SELECT a.reference, a.number FROM chosen c
    JOIN attempts a ON a.reference = c.reference AND a.number = c.number
    WHERE coalesce(a.next_ask_at, 'infinity') <= {due} AND {conditions}
    FOR NO KEY UPDATE OF a SKIP LOCKED
), held AS (
    UPDATE attempts a SET held_until = :until FROM locked l WHERE a.reference = l.reference AND a.number = l.number
    RETURNING {", ".join(f"a.{name}" for name in _LOADED)}
)
SELECT * FROM held ORDER BY next_ask_at, reference
""")


DUE_CHECKS = _asks(":now", "(a.held_until IS NULL OR a.held_until <= :now OR a.held_until > :longest)")
# Sent to a provider before `since`, and neither checked nor leased by a worker since.
ASKS_IN_THE_AIR = _asks(
    ":due",
    "a.created_at < :since AND a.state <> 'CLAIMED' AND (a.last_ask_at IS NULL OR a.last_ask_at < :since) "
    "AND (a.held_until IS NULL OR a.held_until < :held_since)",
)
# A number and no parameter: not knowing how few, the server would join all of the table.
HASTEN_CHECKS = Statement(f"""
WITH later AS (
    SELECT a.reference, a.number FROM attempts a
    WHERE a.gateway = :gateway AND a.environment = :environment AND a.next_ask_at > :now
    AND (a.confirmed_at IS NULL OR a.confirmed_at > :paid_since)
    ORDER BY a.next_ask_at, a.reference LIMIT {HASTENED_AT_ONCE} FOR NO KEY UPDATE
), hastened AS (
    UPDATE attempts a SET next_ask_at = :now FROM later l WHERE a.reference = l.reference AND a.number = l.number
    RETURNING 1
)
SELECT count(*) FROM hastened
""")
# The first entry of each provider and environment, and no more.
OLDEST_CHECK = Statement("""
SELECT min(first.next_ask_at) FROM (SELECT slug FROM gateways UNION SELECT 'sandbox') AS provider
CROSS JOIN (VALUES ('SANDBOX'), ('LIVE')) AS environments(environment)
CROSS JOIN LATERAL (
    SELECT a.next_ask_at FROM attempts a
    WHERE a.gateway = provider.slug AND a.environment = environments.environment AND a.next_ask_at <= :now
    ORDER BY a.next_ask_at LIMIT 1
) AS first
""")
# An arbitrary order: it forces the index, even when half of the table would match.
COUNT_OPEN_ATTEMPTS = Statement(f"""
SELECT count(*) FROM (
    SELECT reference FROM attempts WHERE gateway_id = :gateway_id AND {IS_UNSETTLED}
    AND (cardinality(CAST(:accounts AS text[])) = 0 OR account <> ALL (CAST(:accounts AS text[])))
    ORDER BY reference LIMIT :most
) AS open
""")
BEGIN_CHECK = Statement("""
UPDATE attempts SET last_ask_at = CAST(:now AS timestamptz) WHERE reference = :reference AND number = :number
AND (last_ask_at IS NULL OR last_ask_at <= CAST(:before AS timestamptz) OR last_ask_at > CAST(:last AS timestamptz))
RETURNING number
""")


def attempt_of(row: Any) -> Attempt:
    *own, kind, url = row
    values = dict(zip(_OWN, own, strict=True))
    values["state"] = _STATES[values["state"]]
    values["hand_off"] = restore(HandOff, {"kind": _KINDS[kind], "checkout_url": url}) if url is not None else None
    return restore(Attempt, values)


def _attempt_values(attempt: Attempt) -> dict[str, Any]:
    hand_off = attempt.hand_off
    return {
        **vars(attempt),
        "held_until": None,
        "state": attempt.state.value,
        "hand_off_kind": hand_off.kind.value if hand_off else None,
        "hand_off_url": hand_off.checkout_url if hand_off else None,
    }


class PostgresAttempts(PostgresRepository):
    async def of_payment(self, reference: str) -> list[Attempt]:
        return [attempt_of(row) for row in await self._connection.rows(ATTEMPTS, reference=reference)]

    async def add(self, attempt: Attempt) -> None:
        self._connection.send(ADD_ATTEMPT, **_attempt_values(attempt))

    async def save(self, attempt: Attempt, token: str) -> None:
        taken_over = Conflict("the attempt was taken over by another transaction")
        self._connection.send(SAVE_ATTEMPT, or_else=taken_over, was=token, **_attempt_values(attempt))

    async def due_checks(
        self,
        gateway: str,
        environment: Environment,
        now: datetime,
        limit: int,
        hold: timedelta,
        since: datetime = EPOCH,
    ) -> list[Attempt]:
        values = {"gateway": gateway, "environment": environment.value, "now": now, "until": now + hold, "limit": limit}
        rows = await self._connection.rows(DUE_CHECKS, **values, longest=now + hold + CLOCK_SLACK)
        due = since + FIRST_CHECK_MAX
        if len(rows) < limit and now < due:
            del values["now"]
            values |= {"since": since, "due": due, "held_since": since + hold, "limit": limit - len(rows)}
            rows += await self._connection.rows(ASKS_IN_THE_AIR, **values)
        return [attempt_of(row) for row in rows]

    async def hasten_checks(self, gateway: str, environment: Environment, now: datetime) -> int:
        paid_since = now - HASTEN_PAID
        values = {"gateway": gateway, "environment": environment.value, "now": now, "paid_since": paid_since}
        return await self._connection.value(HASTEN_CHECKS, **values) or 0

    async def oldest_check(self, now: datetime) -> datetime | None:
        return await self._connection.value(OLDEST_CHECK, now=now)

    async def count_open(self, gateway_id: str, most: int, other_than: Collection[str] = ()) -> int:
        values = {"gateway_id": gateway_id, "most": most, "accounts": list(other_than)}
        return await self._connection.value(COUNT_OPEN_ATTEMPTS, **values) or 0
