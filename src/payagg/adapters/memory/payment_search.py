"""Payments searched in memory."""

from collections import defaultdict
from datetime import UTC, date, datetime
from itertools import accumulate, islice

import msgspec

from payagg.adapters.memory.state import MemoryRepository
from payagg.application.ports.reports import PAGE_BYTES
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal


class MemoryPaymentSearch(MemoryRepository):
    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> tuple[list[Payment], PaymentCursor | None]:
        found = [payment for payment in self.state.payments.values() if wanted.matches(payment, now)]
        if wanted.idempotency_key is not None:
            found = [payment for payment in found if payment.reference in self.state.idempotency_keys.values()]
        older = [payment for payment in found if after is None or PaymentCursor.of(payment) < after]
        newest = sorted(older, key=PaymentCursor.of, reverse=True)
        sizes = [len(msgspec.json.encode(payment.metadata)) if payment.metadata else 0 for payment in newest[:limit]]
        fits = sum(before < PAGE_BYTES for before in accumulate(sizes[:-1], initial=0)) if sizes else 0
        return newest[:fits], PaymentCursor.of(newest[fits - 1]) if fits < len(newest) else None

    async def totals(self, wanted: PaymentFilter, now: datetime, most: int) -> list[PaymentTotal]:
        groups: defaultdict[tuple[date, Status], list[Payment]] = defaultdict(list)
        matching = (payment for payment in self.state.payments.values() if wanted.matches(payment, now))
        for payment in islice(matching, most):
            groups[payment.created_at.astimezone(UTC).date(), payment.as_of(now).status].append(payment)
        order = {status: number for number, status in enumerate(Status)}
        return [_total(*key, groups[key]) for key in sorted(groups, key=lambda key: (key[0], order[key[1]]))]


def _total(day: date, status: Status, payments: list[Payment]) -> PaymentTotal:
    fees = [payment.fee for payment in payments if payment.fee is not None]
    nets = [payment.net_amount for payment in payments if payment.net_amount is not None]
    return PaymentTotal(
        day=day,
        status=status,
        count=len(payments),
        amount=sum(payment.amount for payment in payments),
        fee=sum(fees) if fees else None,
        net_amount=sum(nets) if nets else None,
        with_fee=len(fees),
    )
