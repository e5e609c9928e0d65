"""What happened to the money of settled payments."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC

from payagg.adapters.memory.state import State
from payagg.application.ports.reports import AdjustmentFilter
from payagg.domain.adjustment import Adjustment, AdjustmentTotal, added_up, told_of
from payagg.domain.anomaly import Anomaly
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
                payment.status is Status.REVERSED,
                1,
                one.amount or 0,
            )
            for payment, one in self._published_rows()
            if wanted.business_id in (None, payment.business_id)
            and wanted.environment in (None, payment.environment)
            and since <= one.at < until
        )

    def _published_rows(self) -> Iterator[tuple[Payment, Adjustment]]:
        facts: defaultdict[str, list[Anomaly]] = defaultdict(list)
        for anomaly in self.state.anomalies.values():
            if anomaly.business_id is not None and anomaly.reference in self.state.payments:
                facts[anomaly.reference].append(anomaly)
        for reference, own in facts.items():
            payment = self.state.payments[reference]
            yield from ((payment, one) for one in told_of(own, payment.amount))
