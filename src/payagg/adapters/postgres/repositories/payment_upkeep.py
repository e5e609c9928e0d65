"""What sweeps need of payments: those to expire, and those whose payer is to be erased."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import (
    ARRAY,
    Text,
    any_,
    bindparam,
    func,
    null,
    select,
    text,
    tuple_,
    update,
)

from payagg.adapters.postgres.repositories.payment_rows import PAYMENT
from payagg.adapters.postgres.repositories.rows import PostgresRepository, in_text
from payagg.adapters.postgres.schema.payments import HAS_PAYER, attempts, expiry_progress, payments
from payagg.adapters.postgres.statement import Statement
from payagg.domain.payment import PAYER_FIELDS, Payment, Status
from payagg.domain.payment_search import EARLIEST

# A payment may be committed after its window has closed, where windows are short: by so much at most, as every
# transaction of ours ends before.
LATE_MAX = timedelta(seconds=30)
PROGRESS = Statement(select(expiry_progress.c.until))
# Hidden from the planner: by its statistics of a time when nothing was INITIATED it would read the whole table.
_IS_INITIATED = payments.c.status == select(in_text(Status.INITIATED.value)).scalar_subquery()
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
EXPIRED = Statement(
    select(*PAYMENT.columns)
    .where(_IS_INITIATED, payments.c.expires_at > bindparam("until"), payments.c.expires_at <= bindparam("now"))
    .order_by(payments.c.expires_at)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True)
)
INITIATED = Statement(
    select(*PAYMENT.columns)
    .where(
        _IS_INITIATED,
        tuple_(payments.c.expires_at, payments.c.reference) > tuple_(bindparam("until"), bindparam("reference")),
    )
    .order_by(payments.c.expires_at, payments.c.reference)
    .limit(bindparam("limit"))
)


# Of the reference: a payment ends on that day or later.
_DAY = func.substr(payments.c.reference, in_text(5), in_text(8))


@cache
def _settled_with_payer(limit: int) -> Statement:
    return Statement(
        select(payments.c.reference)
        .where(text(f"({HAS_PAYER})"), bindparam("day") >= _DAY, payments.c.settled_at < bindparam("before"))
        .order_by(_DAY)
        .limit(in_text(limit))
        .with_for_update(key_share=True, skip_locked=True)
    )


def _of_payer() -> Statement:
    # A walk in bounded steps: an index for what is asked once a year would cost every initiation.
    step = (
        select(payments.c.reference, payments.c.customer_email)
        .where(payments.c.reference > bindparam("after"))
        .order_by(payments.c.reference)
        .limit(bindparam("limit"))
        .cte("step")
    )
    is_theirs = func.lower(step.c.customer_email) == func.lower(bindparam("email"))
    return Statement(select(func.array_agg(step.c.reference).filter(is_theirs), func.max(step.c.reference)), reads=True)


OF_PAYER = _of_payer()
_REFERENCES = any_(bindparam("references", type_=ARRAY(Text)))
CLEAR_PAYER = Statement(
    update(payments)
    .where(payments.c.reference == _REFERENCES)
    .values(dict.fromkeys((*PAYER_FIELDS, "fingerprint"), null()))
)
CLEAR_HAND_OFF = Statement(
    update(attempts).where(attempts.c.reference == _REFERENCES, attempts.c.hand_off_url != "").values(hand_off_url="")
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
""")  # noqa: S608 - our own number


class PostgresPaymentUpkeep(PostgresRepository):
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
