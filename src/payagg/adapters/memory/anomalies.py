"""Anomalies in memory."""

from collections import Counter
from dataclasses import dataclass

from payagg.adapters.memory.state import BrokenRule, State
from payagg.application.repositories import AnomalyFilter
from payagg.domain.anomaly import ANOMALY, Anomaly, AnomalyKind, AnomalyStatus

OF_PAYMENT_MAX = 1_000


@dataclass(frozen=True)
class MemoryAnomalies:
    state: State

    async def add(self, anomaly: Anomaly) -> None:
        self.state.anomalies[anomaly.id] = anomaly

    async def of_payment(self, reference: str) -> list[Anomaly]:
        return await self.page(AnomalyFilter(reference=reference), OF_PAYMENT_MAX)

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        return self.state.anomalies.get(anomaly_id)

    async def save(self, anomaly: Anomaly) -> None:
        before = self.state.anomalies[anomaly.id]
        if (before.status.value, anomaly.status.value) not in ANOMALY.pairs():
            raise BrokenRule("an anomaly cannot make that move")
        self.state.anomalies[anomaly.id] = anomaly

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        found = [
            anomaly
            for anomaly in self.state.anomalies.values()
            if wanted.status in (None, anomaly.status)
            and wanted.kind in (None, anomaly.kind)
            and wanted.reference in (None, anomaly.reference)
            and (wanted.after is None or anomaly.id < wanted.after)
        ]
        return sorted(found, key=lambda anomaly: anomaly.id, reverse=True)[:limit]

    async def unclosed(self) -> dict[AnomalyKind, int]:
        rows = self.state.anomalies.values()
        return dict(Counter(anomaly.kind for anomaly in rows if anomaly.status is not AnomalyStatus.CLOSED))
