"""Search for payments: lists, totals by day, exports, adjustments. For one business, or for administrators over all."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, cast

from payagg.application.ports.outside import Clock
from payagg.application.ports.reports import AdjustmentFilter
from payagg.application.ports.store import Store
from payagg.application.reports.export import COLUMNS, TOTAL_COLUMNS, cells, lines, total_cells
from payagg.application.schemas.payment_search import (
    AdjustmentDay,
    AdjustmentPage,
    AdjustmentView,
    AdminPayment,
    AdminPaymentPage,
    KindTotal,
    PaymentDay,
    PaymentPage,
    PaymentSummary,
    StatusTotal,
    exact,
)
from payagg.application.schemas.payments import PaymentDetail
from payagg.application.schemas.views import page_of
from payagg.application.use_case import in_transaction, retry_on_conflict
from payagg.domain.adjustment import AdjustmentTotal
from payagg.domain.anomaly import Anomaly
from payagg.domain.errors import invalid
from payagg.domain.payment import Payment
from payagg.domain.payment_search import (
    PAGE_MAX,
    SUMMARY_MAX,
    SUMMARY_PAYMENTS,
    PaymentCursor,
    PaymentFilter,
    PaymentTotal,
)
from payagg.domain.rate_limit import RateLimit, TokenBucket, over_limit
from payagg.domain.values import CURRENCY

ShownPayment = tuple[Payment, PaymentDetail]
Totals = tuple[list[PaymentTotal], list[AdjustmentTotal]]
# Rows that the summaries of one business may read in a minute, in each process.
SUMMARY_READS = RateLimit(SUMMARY_PAYMENTS)
SUMMARIES_REMEMBERED = 10_000  # businesses
EXPORT_PAGE = PAGE_MAX  # payments that an export holds at a time
EXPORT_SLICE = 20  # payments formatted before the loop yields: 5 ms when each has 16 KB of metadata
EXPORT_WAIT = 10  # seconds after which to try again


@dataclass(frozen=True)
class _Summaries:
    """One business's summaries in this process: one at a time, within what is left of SUMMARY_READS."""

    left: TokenBucket
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True)
class PaymentSearch:
    store: Store
    clock: Clock
    _exporting: set[str | None] = field(default_factory=set)
    _summaries: dict[str | None, _Summaries] = field(default_factory=dict)

    async def page(self, wanted: PaymentFilter, after: str | None, limit: int) -> PaymentPage:
        """Newest first, strictly after the cursor; raises VALIDATION_ERROR on `after`."""
        shown, _, following = await self._page(wanted, _cursor(after), limit)
        return PaymentPage([detail for _, detail in shown], *_next(shown, following, after))

    async def page_of_all(self, wanted: PaymentFilter, after: str | None, limit: int) -> AdminPaymentPage:
        """As `page`, with each payment's business."""
        shown, names, following = await self._page(wanted, _cursor(after), limit, named=True)
        payments = [
            AdminPayment(payment.business_id, names.get(payment.business_id, ""), detail) for payment, detail in shown
        ]
        return AdminPaymentPage(payments, *_next(shown, following, after))

    async def summary(self, wanted: PaymentFilter, *, of_all: bool = False) -> PaymentSummary:
        """Totals by day of creation and present status, and of adjustments by their own day; raises VALIDATION_ERROR on
        `from` or `to`: both are required, at most SUMMARY_MAX apart and with at most SUMMARY_READS payments between
        them. Raises RATE_LIMITED when the business's summaries have read as many in a minute; `of_all`, for
        administrators, has no such limit."""
        totals, adjusted = await self._totals(wanted, of_all)
        days = [
            PaymentDay(day, [_total(total) for total in group])
            for day, group in groupby(totals, key=lambda total: total.day)
        ]
        adjustments = [
            AdjustmentDay(day, [_adjustment_total(total) for total in group])
            for day, group in groupby(adjusted, key=lambda total: total.day)
        ]
        # `_totals` has refused an open range.
        return PaymentSummary(cast(datetime, wanted.since), cast(datetime, wanted.until), CURRENCY, days, adjustments)

    async def summary_csv(self, wanted: PaymentFilter, *, of_all: bool = False) -> bytes:
        """`summary` as CSV, a row for each total: a day's payments by status, then its adjustments by kind."""
        totals, adjusted = await self._totals(wanted, of_all)
        rows = [*map(total_cells, totals), *map(total_cells, adjusted)]
        return lines([TOTAL_COLUMNS, *sorted(rows, key=itemgetter(0))])

    async def _totals(self, wanted: PaymentFilter, of_all: bool) -> Totals:
        for name, instant in (("from", wanted.since), ("to", wanted.until)):
            if instant is None:
                raise invalid(name, "Must be given.")
        if wanted.since is None or wanted.until is None or wanted.until - wanted.since > SUMMARY_MAX:
            raise invalid("to", f"Must be at most {SUMMARY_MAX.days} days after `from`.")
        totals = await (self._added_up(wanted) if of_all else self._in_turn(wanted))
        if any(sum(total.count for total in kind) > SUMMARY_READS.most for kind in totals):
            raise invalid("to", f"More than {SUMMARY_READS.most:,} payments lie after `from`: ask for less at a time.")
        return totals

    async def _in_turn(self, wanted: PaymentFilter) -> Totals:
        now = self.clock.now()
        own = self._summaries.pop(wanted.business_id, None) or _Summaries(TokenBucket(SUMMARY_READS, now))
        self._summaries[wanted.business_id] = own  # last = most recently used
        if len(self._summaries) > SUMMARIES_REMEMBERED:
            del self._summaries[next(iter(self._summaries))]
        async with own.turn:
            if wait := own.left.take(SUMMARY_READS, self.clock.now(), 0):
                raise over_limit(wait, f"The summaries of a business read {SUMMARY_READS.most:,} payments a minute.")
            read = SUMMARY_READS.most  # for a read that breaks off, whose count is unknown
            try:
                totals = await self._added_up(wanted)
                read = _read(totals)
            finally:
                own.left.charge(read)
        return totals

    @retry_on_conflict
    async def _added_up(self, wanted: PaymentFilter) -> Totals:
        async with self.store.begin() as tx:
            totals = await tx.payment_search.totals(wanted, self.clock.now(), SUMMARY_READS.most + 1)
            return totals, await tx.adjustments.totals(wanted)

    async def export(self, wanted: PaymentFilter) -> AsyncGenerator[bytes, None]:
        """CSV with a header row, newest first. Each page is one transaction, open for milliseconds however slowly the
        caller reads; payments created meanwhile are not included. Raises RATE_LIMITED while another export of the
        business runs here: one merchant's exports must not delay the others."""
        if wanted.business_id in self._exporting:
            raise over_limit(EXPORT_WAIT, "An export of this business is under way.")
        self._exporting.add(wanted.business_id)
        try:
            yield lines([COLUMNS])
            async for shown, _ in self._pages(wanted):
                async for part in _format_slices(cells(detail) for _, detail in shown):
                    yield part
        finally:
            self._exporting.discard(wanted.business_id)

    async def export_of_all(self, wanted: PaymentFilter) -> AsyncGenerator[bytes, None]:
        """As `export`, with each payment's business; administrators do not wait for each other."""
        yield lines([("businessId", "businessName", *COLUMNS)])
        async for shown, names in self._pages(wanted, named=True):
            rows = ([payment.business_id, names.get(payment.business_id, ""), *cells(one)] for payment, one in shown)
            async for part in _format_slices(rows):
                yield part

    async def _pages(
        self, wanted: PaymentFilter, *, named: bool = False
    ) -> AsyncIterator[tuple[list[ShownPayment], dict[str, str]]]:
        after: PaymentCursor | None = None
        while True:
            shown, names, after = await self._page(wanted, after, EXPORT_PAGE, named=named)
            if shown:
                yield shown, names
            if after is None:
                return

    @retry_on_conflict
    async def _page(
        self, wanted: PaymentFilter, after: PaymentCursor | None, limit: int, *, named: bool = False
    ) -> tuple[list[ShownPayment], dict[str, str], PaymentCursor | None]:
        """Payments as of now, the names of their businesses if wanted, and where the next page begins. Adjustments cost
        one statement more, only for a page that has some."""
        now = self.clock.now()
        async with self.store.begin() as tx:
            found, following = await tx.payment_search.page(wanted, now, after, limit)
            owners = {payment.business_id for payment in found} if named else set()
            names = await tx.businesses.names(owners) if owners else {}
            adjusted = [payment.reference for payment in found if payment.has_adjustments]
            facts: defaultdict[str | None, list[Anomaly]] = defaultdict(list)
            for fact in await tx.anomalies.of_payments(adjusted) if adjusted else []:
                facts[fact.reference].append(fact)
        shown = [payment.as_of(now) for payment in found]
        details = [PaymentDetail.of(payment, facts[payment.reference]) for payment in shown]
        return list(zip(shown, details, strict=True)), names, following


async def _format_slices(rows: Iterable[Sequence[Any]]) -> AsyncIterator[bytes]:
    """The rows in slices; the loop runs others after each."""
    left = iter(rows)
    while some := list(islice(left, EXPORT_SLICE)):
        yield lines(some)
        await asyncio.sleep(0)


def _read(totals: Totals) -> int:
    """The number of rows added up."""
    return sum(total.count for kind in totals for total in kind)


def _cursor(after: str | None) -> PaymentCursor | None:
    return PaymentCursor.parse(after) if after is not None else None


def _next(shown: list[ShownPayment], following: PaymentCursor | None, after: str | None) -> tuple[str | None, bool]:
    """The page's `nextCursor` and `hasMore`."""
    if following is not None:
        return following.text, True
    return (PaymentCursor.of(shown[-1][0]).text if shown else after), False


def _total(total: PaymentTotal) -> StatusTotal:
    return StatusTotal(
        status=total.status,
        count=total.count,
        amount=exact(total.amount),
        fee=None if total.fee is None else exact(total.fee),
        net_amount=None if total.net_amount is None else exact(total.net_amount),
        with_fee=total.with_fee,
    )


def _adjustment_total(total: AdjustmentTotal) -> KindTotal:
    return KindTotal(total.kind, total.count, exact(total.amount), exact(total.effect))


async def adjustment_page(store: Store, wanted: AdjustmentFilter, limit: int) -> AdjustmentPage:
    """Newest first by the latest fact of each, strictly after the cursor."""
    found = await in_transaction(store, lambda tx: tx.adjustments.page(wanted, limit + 1))
    shown, cursor, has_more = page_of(found, limit, wanted.after)
    return AdjustmentPage([AdjustmentView.of(adjustment) for adjustment in shown], cursor, has_more)
