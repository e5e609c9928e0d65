"""Anomalies in memory."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from payagg.adapters.memory.state import BrokenRule, State
from payagg.application.ports.reports import AnomalyFilter
from payagg.domain.anomaly import ANOMALY, Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.checks import with_changes
from payagg.domain.values import Environment

OF_PAYMENT_MAX = 1_000


@dataclass(frozen=True)
class MemoryAnomalies:
    state: State

    async def add(self, anomaly: Anomaly) -> None:
        self.state.anomalies[anomaly.id] = anomaly

    async def last_id(self) -> str | None:
        return max(self.state.anomalies, default=None)

    async def of_payment(self, reference: str) -> list[Anomaly]:
        return await self.page(AnomalyFilter(reference=reference), OF_PAYMENT_MAX)

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        return [anomaly for reference in references for anomaly in await self.of_payment(reference)]

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        return self.state.anomalies.get(anomaly_id)

    async def save(self, anomaly: Anomaly) -> None:
        before = self.state.anomalies[anomaly.id]
        is_worked_on = before.status is anomaly.status and before.status not in ANOMALY.final
        if not is_worked_on and (before.status.value, anomaly.status.value) not in ANOMALY.pairs:
            raise BrokenRule("an anomaly cannot make that move")
        self.state.anomalies[anomaly.id] = anomaly

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        before = self.state.anomalies[anomaly_id]
        if before.event_sequence is not None:
            raise BrokenRule("an anomaly is told once")
        self.state.anomalies[anomaly_id] = with_changes(before, event_sequence=sequence)

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        found = [
            anomaly
            for anomaly in self.state.anomalies.values()
            if wanted.status in (None, anomaly.status)
            and (wanted.kinds is None or anomaly.kind in wanted.kinds)
            and wanted.assignee in (None, anomaly.assignee)
            and wanted.reference in (None, anomaly.reference)
            and (wanted.after is None or anomaly.id < wanted.after)
        ]
        return sorted(found, key=lambda anomaly: anomaly.id, reverse=True)[:limit]

    async def count_open(self) -> dict[tuple[AnomalyKind, Environment | None], int]:
        unclosed = (one for one in self.state.anomalies.values() if one.status is not AnomalyStatus.CLOSED)
        return dict(Counter((one.kind, one.environment) for one in unclosed))

    async def forget(self, before: datetime, limit: int) -> int:
        old = [
            anomaly.id
            for anomaly in self.state.anomalies.values()
            if anomaly.closed_at is not None
            and anomaly.closed_at < before
            and anomaly.environment is Environment.SANDBOX
            and anomaly.event_sequence is None
        ][:limit]
        for id in old:
            del self.state.anomalies[id]
        return len(old)
