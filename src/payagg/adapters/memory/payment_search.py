"""Payments searched in memory."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime

from payagg.adapters.memory.state import State
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal


@dataclass(frozen=True)
class MemoryPaymentSearch:
    state: State

    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> list[Payment]:
        found = [payment for payment in self.state.payments.values() if wanted.matches(payment, now)]
        if wanted.idempotency_key is not None:
            found = [payment for payment in found if payment.reference in self.state.idempotency_keys.values()]
        older = [payment for payment in found if after is None or PaymentCursor.of(payment) < after]
        return sorted(older, key=PaymentCursor.of, reverse=True)[:limit]

    async def totals(self, wanted: PaymentFilter, now: datetime) -> list[PaymentTotal]:
        counts: Counter[tuple[date, Status]] = Counter()
        amounts: Counter[tuple[date, Status]] = Counter()
        for payment in self.state.payments.values():
            if wanted.matches(payment, now):
                key = payment.created_at.astimezone(UTC).date(), payment.as_of(now).status
                counts[key] += 1
                amounts[key] += payment.amount
        order = {status: number for number, status in enumerate(Status)}
        keys = sorted(counts, key=lambda key: (key[0], order[key[1]]))
        return [PaymentTotal(*key, counts[key], amounts[key]) for key in keys]
