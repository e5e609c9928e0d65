"""Working off anomalies: what operators list, acknowledge and close."""

from dataclasses import dataclass

from payagg.application.ports import AnomalyFilter, Clock, Store
from payagg.application.retry import retried
from payagg.domain.anomaly import Anomaly
from payagg.domain.errors import ErrorCode, Refusal


@dataclass(frozen=True)
class Anomalies:
    store: Store
    clock: Clock

    async def listed(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        """A page, newest first; the next one follows the last id."""
        async with self.store.begin() as tx:
            return await tx.anomalies.page(wanted, limit)

    @retried
    async def acknowledge(self, anomaly_id: str, by: str) -> Anomaly:
        """Raises NOT_FOUND or ANOMALY_NOT_OPEN."""
        async with self.store.begin() as tx:
            acknowledged = _known(await tx.anomalies.lock(anomaly_id)).acknowledge(by, self.clock.now())
            await tx.anomalies.save(acknowledged)
            return acknowledged

    @retried
    async def close(self, anomaly_id: str, by: str, reason: str) -> Anomaly:
        """`reason` says what was done. Raises VALIDATION_ERROR, NOT_FOUND or ANOMALY_ALREADY_CLOSED."""
        async with self.store.begin() as tx:
            closed = _known(await tx.anomalies.lock(anomaly_id)).close(by, reason, self.clock.now())
            await tx.anomalies.save(closed)
            return closed


def _known(anomaly: Anomaly | None) -> Anomaly:
    if anomaly is None:
        raise Refusal(ErrorCode.NOT_FOUND)
    return anomaly
