"""Searches payments by index: a page is merged from one range for each environment and status."""

# ruff: noqa: S608 - our own words

from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from payagg.adapters.postgres.repositories.payments import GET, PAYMENT
from payagg.adapters.postgres.repositories.rows import PostgresRepository
from payagg.adapters.postgres.repositories.webhook_events import BEGAN, WRITING
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.reports import PAGE_BYTES
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import EARLIEST, LATEST, PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.values import Environment

# The instant before which every payment is visible: one that is being added is dated within its transaction, and after
# that has a number (docs/decisions.md). The transaction that asks began before it looks. With it the instant
# from which payments were dated by a clock that was ahead: no payment that is being added is; NULL where there is none.
HORIZON = Statement(f"""
    SELECT least(now(), min({BEGAN})), CASE WHEN EXISTS (
        SELECT FROM payments WHERE currency = 'NGN' AND environment IN ('SANDBOX', 'LIVE')
        AND created_at > now() + interval '1 minute') THEN now() + interval '1 minute' END
    FROM {WRITING}
    """)
# What a range may bring, as the plan is told: a page and one more to see whether it is the last, by default and
# at most. Each size is a statement that every connection keeps, so there is none for each page.
SIZES = (21, 101)
# Payments that a page looks at for those of a status: no index has it (see schema.sql).
LOOKED_AT = 2_000
_ORDER = {status: number for number, status in enumerate(Status)}
# True of every payment: said to be allowed one index of two, and not to be misled into the other.
_OF_BUSINESS = "amount > 0"
_OF_ALL = "currency = 'NGN'"


class _Shape(NamedTuple):
    """The part of a search that is in the statement itself."""

    has_business: bool
    has_email: bool
    has_environment: bool
    has_status: bool
    size: int

    @property
    def each_business(self) -> bool:
        return self.has_email and not self.has_business

    @property
    def looks(self) -> int:
        """How many payments a page looks at; of each business where an address has many."""
        return LOOKED_AT if self.has_status and not self.each_business else self.size


_IS_THEIRS = "lower(customer_email) = lower(CAST(:email AS text))"
# As a reader at `now` sees it.
_SEEN = """
CASE WHEN status = 'INITIATED' AND expires_at <= CAST(:now AS timestamptz) THEN 'FAILED' ELSE status END AS seen
"""
OF_KEY = PAYMENT.query("""
JOIN idempotency_keys k ON k.reference = payments.reference
WHERE k.business_id = :business_id AND k.key = :key AND k.environment = ANY(:environments)
""")


@cache
def _totals(has_business: bool, most: int) -> Statement:
    return Statement(f"""
    SELECT CAST(timezone('UTC', created_at) AS date), seen, count(*), sum(amount), sum(fee), sum(net_amount), count(fee)
    FROM (
        SELECT created_at, {_SEEN}, amount, fee, net_amount FROM payments
        WHERE {f"{_OF_BUSINESS} AND business_id = :business_id" if has_business else _OF_ALL}
        AND environment = ANY (CAST(:environments AS text[]))
        AND created_at >= CAST(:since AS timestamptz) AND created_at < CAST(:until AS timestamptz) LIMIT {most:d}
    ) AS entries GROUP BY 1, 2
    """)


# The businesses that have payments of this address, one step in the index for each.
_EACH = f"""
WITH RECURSIVE each (business_id) AS (
    SELECT min(business_id) FROM payments WHERE {_IS_THEIRS}
    UNION ALL
    SELECT (SELECT min(p.business_id) FROM payments p WHERE {_IS_THEIRS} AND p.business_id > each.business_id)
    FROM each WHERE each.business_id IS NOT NULL
)
"""


def _looked_at(shape: _Shape) -> str:
    """Places of the newest payments that the search looks at, newest first, merged from one range of an index for each
    environment: of the index alone, as the planner would sort what it has to read rows for."""
    # A number in the text tells the planner how few rows come.
    newest = f"ORDER BY created_at DESC, reference DESC LIMIT {shape.looks:d}"
    fixed = _IS_THEIRS if shape.has_email else _OF_BUSINESS if shape.has_business else _OF_ALL
    if shape.each_business or shape.has_business:
        fixed += f" AND payments.business_id = {'each.business_id' if shape.each_business else ':business_id'}"
    ranges = [
        f"""
        (SELECT created_at, reference FROM payments WHERE {fixed} AND environment = {environment}
         AND created_at >= CAST(:since AS timestamptz)
         AND (created_at, reference) < (CAST(:below_at AS timestamptz), :below_reference) {newest})
        """
        for environment in ([":environment"] if shape.has_environment else ["'SANDBOX'", "'LIVE'"])
    ]
    each = "each CROSS JOIN" if shape.each_business else ""
    return f"(SELECT created_at, reference FROM {each} LATERAL ({' UNION ALL '.join(ranges)}) AS merged {newest})"


@cache
def _page(shape: _Shape) -> Statement:
    places = f"{_looked_at(shape)} AS looked_at"
    if shape.has_status:
        # LIMIT keeps the look-up of a payment a look-up.
        places += f""" CROSS JOIN LATERAL (
            SELECT {_SEEN} FROM payments WHERE payments.reference = looked_at.reference LIMIT 1
        ) AS seen WHERE seen.seen = :status"""
    # Without metadata the text is NULL, and no row is read twice.
    return Statement(
        f"""{_EACH if shape.each_business else ""}
        SELECT {", ".join(PAYMENT.names)}, "of" FROM (
            SELECT {PAYMENT.listed}, count(*) OVER () AS "of",
                sum(coalesce(octet_length(CAST(metadata AS text)), 0)) OVER (
                    ORDER BY payments.created_at DESC, payments.reference DESC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM payments JOIN (
                SELECT looked_at.reference FROM {places}
                ORDER BY looked_at.created_at DESC, looked_at.reference DESC LIMIT :limit
            ) AS page ON page.reference = payments.reference
        ) AS whole WHERE coalesce(before, 0) < {PAGE_BYTES} ORDER BY created_at DESC, reference DESC
        """,
        reads=True,
    )


@cache
def _last_look(shape: _Shape) -> Statement:
    """The place of the last payment that a page by status looks at; none where there are fewer."""
    return Statement(
        f"""{_EACH if shape.each_business else ""}
        SELECT created_at, reference FROM {_looked_at(shape)} AS looked_at
        ORDER BY created_at DESC, reference DESC OFFSET {shape.looks - 1:d} LIMIT 1
        """,
        reads=True,
    )


class PostgresPaymentSearch(PostgresRepository):
    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> tuple[list[Payment], PaymentCursor | None]:
        if wanted.reference is None and wanted.idempotency_key is None:
            return await self._read_page(wanted, now, after, limit)
        found = [payment for payment in await self._looked_up(wanted) if wanted.matches(payment, now)]
        older = [payment for payment in found if after is None or PaymentCursor.of(payment) < after]
        shown = sorted(older, key=PaymentCursor.of, reverse=True)[:limit]
        return shown, PaymentCursor.of(shown[-1]) if len(older) > limit else None

    async def totals(self, wanted: PaymentFilter, now: datetime, most: int) -> list[PaymentTotal]:
        rows = await self._connection.rows(
            _totals(wanted.business_id is not None, most),
            business_id=wanted.business_id,
            environments=_environments(wanted),
            since=wanted.since or EARLIEST,
            until=wanted.until or LATEST,
            now=now,
        )
        totals = [
            PaymentTotal(day, Status(seen), count, int(amount), _whole(fee), _whole(net), with_fee)
            for day, seen, count, amount, fee, net, with_fee in rows
        ]
        shown = [total for total in totals if wanted.status in (None, total.status)]
        return sorted(shown, key=lambda total: (total.day, _ORDER[total.status]))

    async def _looked_up(self, wanted: PaymentFilter) -> list[Payment]:
        if wanted.reference is not None:
            return PAYMENT.all(await self._connection.rows(GET, reference=wanted.reference))
        values = {"business_id": wanted.business_id, "key": wanted.idempotency_key}
        return PAYMENT.all(await self._connection.rows(OF_KEY, environments=_environments(wanted), **values))

    async def _read_page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> tuple[list[Payment], PaymentCursor | None]:
        # The horizon first, then a newer snapshot: everything older than the horizon is visible in it.
        [(horizon, ahead)] = await self._connection.rows(HORIZON)
        since, until = wanted.since or EARLIEST, wanted.until or LATEST
        if ahead is None or (after is not None and after.created_at < ahead):
            return await self._read_range(wanted, now, after, limit, since, min(horizon, until))
        found, following = await self._read_range(wanted, now, after, limit, max(ahead, since), until)
        if following is not None or len(found) == limit:
            return found, following or PaymentCursor.of(found[-1])
        rest, following = await self._read_range(wanted, now, None, limit - len(found), since, min(horizon, until))
        return [*found, *rest], following

    async def _read_range(
        self,
        wanted: PaymentFilter,
        now: datetime,
        after: PaymentCursor | None,
        limit: int,
        since: datetime,
        until: datetime,
    ) -> tuple[list[Payment], PaymentCursor | None]:
        # One lower and one upper end, so that a range is read from its end, whichever of the two upper ones is lower.
        # No reference is below the empty one.
        below = after if after is not None and after.created_at < until else PaymentCursor(until, "")
        shape = _Shape(
            has_business=wanted.business_id is not None,
            has_email=wanted.email is not None,
            has_environment=wanted.environment is not None,
            has_status=wanted.status is not None,
            size=next((size for size in SIZES if size > limit), limit + 1),
        )
        values: dict[str, Any] = {
            "business_id": wanted.business_id,
            "email": wanted.email,
            "environment": wanted.environment.value if wanted.environment is not None else None,
            "now": now,
            "since": since,
            "below_at": below.created_at,
            "below_reference": below.reference,
        }
        status = wanted.status.value if wanted.status is not None else None
        rows = await self._connection.rows(_page(shape), **values, status=status, limit=limit + 1)
        found = PAYMENT.all(row[:-1] for row in rows[:limit])
        # Each row has the number of rows before the page was cut.
        if rows and rows[0][-1] > min(limit, len(rows)):
            return found, PaymentCursor.of(found[-1])
        if wanted.status is None:
            return found, None
        last = await self._connection.row(_last_look(shape), **values)
        return found, None if last is None else PaymentCursor(*last)


def _whole(total: Decimal | None) -> int | None:
    return None if total is None else int(total)


def _environments(wanted: PaymentFilter) -> list[str]:
    return [environment.value for environment in Environment if wanted.environment in (None, environment)]
