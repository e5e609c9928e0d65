"""Searches payments by index: a page is merged from one range for each environment and status."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Date,
    Integer,
    Select,
    Subquery,
    Text,
    TextClause,
    and_,
    any_,
    bindparam,
    case,
    cast,
    func,
    lateral,
    select,
    text,
    true,
    tuple_,
    union_all,
)

from payagg.adapters.postgres.repositories.horizon import BEGAN, WRITING
from payagg.adapters.postgres.repositories.payments import GET, PAYMENT
from payagg.adapters.postgres.repositories.rows import PostgresRepository, in_text
from payagg.adapters.postgres.schema.payments import idempotency_keys, payments
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.reports import PAGE_BYTES
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import EARLIEST, LATEST, PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.values import Environment

# The instant before which every payment is visible: one that is being added is dated within its transaction, and after
# that has a number (docs/decisions.md). The transaction that asks began before it looks. With it the instant
# from which payments were dated by a clock that was ahead: no payment that is being added is; NULL where there is none.
HORIZON = Statement(
    f"""
    SELECT least(now(), min({BEGAN})), CASE WHEN EXISTS (
        SELECT FROM payments WHERE currency = 'NGN' AND environment IN ('SANDBOX', 'LIVE')
        AND created_at > now() + interval '1 minute') THEN now() + interval '1 minute' END
    FROM {WRITING}
    """,  # noqa: S608 - our own words
    reads=True,
)
# What a range may bring, as the plan is told: a page and one more to see whether it is the last, by default and
# at most. Each size is a statement that every connection keeps, so there is none for each page.
SIZES = (21, 101)
# Payments that a page looks at for those of a status: no index has it (see schema/payments.py).
LOOKED_AT = 2_000
_ORDER = {status: number for number, status in enumerate(Status)}
_NEWEST_FIRST = (payments.c.created_at.desc(), payments.c.reference.desc())
# True of every payment: said to be allowed one index of two, and not to be misled into the other.
_OF_BUSINESS = text("payments.amount > 0")
_OF_ALL = text("payments.currency = 'NGN'")

Conditions = list[ColumnElement[bool] | TextClause]


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


_IS_THEIRS = func.lower(payments.c.customer_email) == func.lower(bindparam("email", type_=Text))
_IN_ENVIRONMENTS = any_(bindparam("environments", type_=ARRAY(Text)))
_IS_PAST = (payments.c.status == in_text(Status.INITIATED.value)) & (payments.c.expires_at <= bindparam("now"))
# As a reader at `now` sees it.
_SEEN = case((_IS_PAST, in_text(Status.FAILED.value)), else_=payments.c.status)
OF_KEY = Statement(
    select(*PAYMENT.columns)
    .join(idempotency_keys, idempotency_keys.c.reference == payments.c.reference)
    .where(
        idempotency_keys.c.business_id == bindparam("business_id"),
        idempotency_keys.c.key == bindparam("key"),
        idempotency_keys.c.environment == _IN_ENVIRONMENTS,
    )
)


@cache
def _totals(has_business: bool, most: int) -> Statement:
    own = payments.c
    entries = (
        select(own.created_at, _SEEN.label("seen"), own.amount, own.fee, own.net_amount)
        .where(and_(_OF_BUSINESS, own.business_id == bindparam("business_id")) if has_business else _OF_ALL)
        .where(own.environment == _IN_ENVIRONMENTS)
        .where(own.created_at >= bindparam("since"), own.created_at < bindparam("until"))
        .limit(in_text(most))
        .subquery("entries")
    )
    entry = entries.c
    day = cast(func.timezone(in_text("UTC"), entry.created_at), Date)
    query = select(
        *(day, entry.seen, func.count(), func.sum(entry.amount)),
        *(func.sum(entry.fee), func.sum(entry.net_amount), func.count(entry.fee)),
    ).group_by(text("1, 2"))
    return Statement(query, reads=True)


def _looked_at(shape: _Shape) -> Subquery:
    """Places of the newest payments that the search looks at, newest first, merged from one range of an index for each
    environment: of the index alone, as the planner would sort what it has to read rows for."""
    own = payments.c
    # A literal tells the planner how few rows come.
    few = in_text(shape.looks)
    place = tuple_(bindparam("below_at", type_=own.created_at.type), bindparam("below_reference", type_=Text))
    times = (own.created_at >= bindparam("since"), tuple_(own.created_at, own.reference) < place)
    each = _businesses_of_email() if shape.each_business else None
    ranges: list[Select[Any]] = []
    for conditions in _ranges(shape, each):
        ends = select(own.created_at, own.reference).where(*conditions, *times)
        ends = ends if each is None else ends.correlate(each)
        ranges.append(ends.order_by(*_NEWEST_FIRST).limit(few))
    merged = lateral(union_all(*ranges), "merged")
    places = select(merged.c.created_at, merged.c.reference)
    if each is not None:
        places = places.select_from(each.join(merged, true()))
    newest = (merged.c.created_at.desc(), merged.c.reference.desc())
    return places.order_by(*newest).limit(few).subquery("looked_at")


@cache
def _page(shape: _Shape) -> Statement:
    own = payments.c
    looked = _looked_at(shape)
    places = select(looked.c.reference)
    if shape.has_status:
        # LIMIT keeps the look-up of a payment a look-up.
        own_status = select(_SEEN.label("seen")).where(own.reference == looked.c.reference).limit(in_text(1))
        seen = own_status.lateral("seen")
        places = places.join(seen, true()).where(seen.c.seen == bindparam("status"))
    newest = places.order_by(looked.c.created_at.desc(), looked.c.reference.desc())
    page = newest.limit(bindparam("limit", type_=Integer)).subquery("page")
    # Without metadata the text is NULL, and no row is read twice.
    bytes_ = func.coalesce(func.octet_length(cast(own.metadata, Text)), 0)
    before = func.sum(bytes_).over(order_by=_NEWEST_FIRST, rows=(None, -1))
    found = select(*PAYMENT.columns, before.label("before"), func.count().over().label("of"))
    whole = found.join(page, page.c.reference == own.reference).subquery("whole")
    columns = [whole.c[name] for name in PAYMENT.names]
    query = select(*columns, whole.c.of).where(func.coalesce(whole.c.before, 0) < in_text(PAGE_BYTES))
    return Statement(query.order_by(whole.c.created_at.desc(), whole.c.reference.desc()), reads=True)


@cache
def _last_look(shape: _Shape) -> Statement:
    """The place of the last payment that a page by status looks at; none where there are fewer."""
    looked = _looked_at(shape)
    newest = (looked.c.created_at.desc(), looked.c.reference.desc())
    last = select(looked.c.created_at, looked.c.reference).order_by(*newest)
    return Statement(last.offset(in_text(shape.looks - 1)).limit(in_text(1)))


def _ranges(shape: _Shape, each: CTE | None) -> Iterator[Conditions]:
    own = payments.c
    fixed: Conditions = []
    if each is not None:
        fixed.append(own.business_id == each.c.business_id)
    elif shape.has_business:
        fixed.append(own.business_id == bindparam("business_id"))
    if shape.has_email:
        fixed.append(_IS_THEIRS)
    else:
        fixed.append(_OF_BUSINESS if shape.has_business else _OF_ALL)
    environments: list[ColumnElement[str]] = [in_text(environment.value) for environment in Environment]
    for environment in [bindparam("environment")] if shape.has_environment else environments:
        yield [*fixed, own.environment == environment]


def _businesses_of_email() -> CTE:
    """The businesses that have payments of this address, one step in the index for each."""
    own = payments.c
    first = select(func.min(own.business_id).label("business_id")).where(_IS_THEIRS)
    each = first.cte("each", recursive=True)
    following = select(func.min(own.business_id)).where(_IS_THEIRS, own.business_id > each.c.business_id)
    return each.union_all(select(following.correlate(each).scalar_subquery()).where(each.c.business_id.is_not(None)))


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
