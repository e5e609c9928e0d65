"""Payments searched by index: a page is merged from one range for each environment and status."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Date,
    ScalarSelect,
    Select,
    TextClause,
    and_,
    case,
    cast,
    func,
    lateral,
    literal,
    select,
    text,
    tuple_,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.repositories.payments import PAYMENT
from payagg.adapters.postgres.schema.tables import idempotency_keys, payments
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.values import Environment

# The instant before which every payment is visible: one that is being added is dated within its transaction, and after
# that has a number (decision 0605). The transaction that asks began before it looks.
_HORIZON = text("""
    SELECT least(now(), min(xact_start)) FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
""")
_ORDER = {status: number for number, status in enumerate(Status)}
_NEWEST_FIRST = (payments.c.created_at.desc(), payments.c.reference.desc())
# True of every payment: said to be allowed one index of two, and not to be misled into the other.
_OF_BUSINESS = text("payments.amount > 0")
_OF_ALL = text("payments.currency = 'NGN'")

Conditions = list[ColumnElement[bool] | TextClause]


class PostgresPaymentSearch:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> list[Payment]:
        if wanted.reference is None and wanted.idempotency_key is None:
            return await self._merged(wanted, now, after, limit)
        found = [payment for payment in await self._looked_up(wanted) if wanted.matches(payment, now)]
        older = [payment for payment in found if after is None or PaymentCursor.of(payment) < after]
        return sorted(older, key=PaymentCursor.of, reverse=True)[:limit]

    async def totals(self, wanted: PaymentFilter, now: datetime) -> list[PaymentTotal]:
        own = payments.c
        business = wanted.business_id
        is_past = (own.status == Status.INITIATED.value) & (own.expires_at <= now)
        seen = case((is_past, Status.FAILED.value), else_=own.status)
        day = cast(func.timezone("UTC", own.created_at), Date)
        query = (
            select(day, seen, func.count(), func.sum(own.amount))
            .where(_OF_ALL if business is None else and_(_OF_BUSINESS, own.business_id == business))
            .where(own.environment.in_([environment.value for environment in _environments(wanted)]))
            # All of them, so that the times after the status in the index bound what is read.
            .where(own.status.in_([status.value for status in Status]))
            .where(*_times(wanted.since, wanted.until))
            .group_by(text("1, 2"))
        )
        rows = await self._connection.execute(query)
        totals = [PaymentTotal(row[0], Status(row[1]), row[2], int(row[3])) for row in rows]
        shown = [total for total in totals if wanted.status in (None, total.status)]
        return sorted(shown, key=lambda total: (total.day, _ORDER[total.status]))

    async def _looked_up(self, wanted: PaymentFilter) -> list[Payment]:
        query = select(*PAYMENT.columns)
        if wanted.reference is not None:
            query = query.where(payments.c.reference == wanted.reference)
        else:
            own = idempotency_keys.c
            query = query.join(idempotency_keys, own.reference == payments.c.reference)
            query = query.where(own.business_id == wanted.business_id, own.key == wanted.idempotency_key)
            environments = _environments(wanted)
            query = query.where(own.environment.in_([environment.value for environment in environments]))
        return [PAYMENT.load(row) for row in await self._connection.execute(query)]

    async def _merged(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> list[Payment]:
        # First the horizon, then a younger snapshot: what is older than the horizon is visible in it.
        horizon: datetime = (await self._connection.execute(_HORIZON)).scalar_one()
        until = horizon if wanted.until is None else min(horizon, wanted.until)
        # The planner is told how few rows come, whoever asks.
        few = literal(limit, literal_execute=True)
        times = _times(wanted.since, until, after)
        each = _businesses_of(wanted.email) if wanted.email is not None and wanted.business_id is None else None
        business = wanted.business_id if each is None else each.c.business_id
        ranges: list[Select[Any]] = []
        for conditions in _ranges(wanted, now, business):
            ends = select(payments.c.created_at, payments.c.reference).where(*conditions, *times)
            ends = ends if each is None else ends.correlate(each)
            ranges.append(ends.order_by(*_NEWEST_FIRST).limit(few))
        merged = lateral(union_all(*ranges), "merged")
        places = select(merged.c.created_at, merged.c.reference)
        if each is not None:
            places = places.select_from(each.join(merged, literal(True)))
        page = places.order_by(merged.c.created_at.desc(), merged.c.reference.desc()).limit(few).subquery("page")
        query = select(*PAYMENT.columns).join(page, page.c.reference == payments.c.reference).order_by(*_NEWEST_FIRST)
        return [PAYMENT.load(row) for row in await self._connection.execute(query)]


def _unfolded(word: str) -> ScalarSelect[str]:
    """A value that the planner does not know while it plans: told that the status is INITIATED, it would take the index
    of what is to expire for the right one where its statistics are of a quiet time, and read all of that."""
    return select(literal(word)).scalar_subquery()


def _environments(wanted: PaymentFilter) -> tuple[Environment, ...]:
    return tuple(Environment) if wanted.environment is None else (wanted.environment,)


def _ranges(wanted: PaymentFilter, now: datetime, business: ColumnElement[str] | str | None) -> Iterator[Conditions]:
    """One range of an index for each environment and stored status that a reader may see at `now` as wanted."""
    own = payments.c
    fixed: Conditions = [] if business is None else [own.business_id == business]
    if wanted.email is not None:
        fixed.append(own.customer_email == wanted.email)
    else:
        fixed.append(_OF_ALL if business is None else _OF_BUSINESS)
    is_past = own.expires_at <= now
    for environment in _environments(wanted):
        for status in Status:
            conditions = [*fixed, own.environment == environment.value, own.status == _unfolded(status.value)]
            if status is Status.INITIATED and wanted.status is Status.FAILED:
                yield [*conditions, is_past]
            elif status is Status.INITIATED and wanted.status is status:
                yield [*conditions, ~is_past]
            elif wanted.status in (None, status):
                yield conditions


def _times(since: datetime | None, until: datetime | None, after: PaymentCursor | None = None) -> Conditions:
    """One lower and one upper end, so that a range is read from its end, whichever of the two upper ones is lower."""
    own = payments.c
    conditions: Conditions = [] if since is None else [own.created_at >= since]
    if after is not None and (until is None or after.created_at < until):
        place = tuple_(literal(after.created_at, own.created_at.type), literal(after.reference))
        conditions.append(tuple_(own.created_at, own.reference) < place)
    elif until is not None:
        conditions.append(own.created_at < until)
    return conditions


def _businesses_of(email: str) -> CTE:
    """The businesses that have payments of this address, one step in the index for each."""
    own = payments.c
    first = select(func.min(own.business_id).label("business_id")).where(own.customer_email == email)
    each = first.cte("each", recursive=True)
    following = select(func.min(own.business_id)).where(
        own.customer_email == email, own.business_id > each.c.business_id
    )
    return each.union_all(select(following.correlate(each).scalar_subquery()).where(each.c.business_id.is_not(None)))
