"""Adjustments of payments in memory."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC

from payagg.adapters.memory.state import State
from payagg.application.ports.reports import AdjustmentFilter
from payagg.domain.adjustment import Adjustment, AdjustmentTotal, added_up, told_of
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import EARLIEST, LATEST, PaymentFilter


@dataclass(frozen=True)
class MemoryAdjustments:
    state: State

    async def page(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        found = [
            one
            for payment, one in self._published_rows()
            if (payment.business_id, payment.environment) == (wanted.business_id, wanted.environment)
            and (one.needs_attention or not wanted.needs_attention)
            and (wanted.after is None or one.id < wanted.after)
        ]
        return sorted(found, key=lambda one: one.id, reverse=True)[:limit]

    async def totals(self, wanted: PaymentFilter) -> list[AdjustmentTotal]:
        since, until = wanted.since or EARLIEST, wanted.until or LATEST
        return added_up(
            (
                one.at.astimezone(UTC).date(),
                self.state.anomalies[one.id].kind,
                one.state,
                payment.status is Status.REVERSED and not self._is_of_second(one),
                1,
                one.amount or 0,
            )
            for payment, one in self._published_rows()
            if wanted.business_id in (None, payment.business_id)
            and wanted.environment in (None, payment.environment)
            and since <= one.at < until
        )

    def _is_of_second(self, adjustment: Adjustment) -> bool:
        """Whether a charge brought it that paid beside the one that the payment's status is about."""
        facts = [fact for fact in self.state.anomalies.values() if fact.reference == adjustment.reference]
        own = self.state.anomalies[adjustment.id].details.get("providerReference")
        second = [fact for fact in facts if fact.kind is AnomalyKind.SECOND_CHARGE]
        return own is not None and any(fact.details.get("providerReference") == own for fact in second)

    def _published_rows(self) -> Iterator[tuple[Payment, Adjustment]]:
        facts: defaultdict[str, list[Anomaly]] = defaultdict(list)
        for anomaly in self.state.anomalies.values():
            if anomaly.business_id is not None and anomaly.reference in self.state.payments:
                facts[anomaly.reference].append(anomaly)
        for reference, own in facts.items():
            payment = self.state.payments[reference]
            yield from ((payment, one) for one in told_of(own, payment.amount))
