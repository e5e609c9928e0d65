"""Working off anomalies: what operators list, acknowledge and close."""

from dataclasses import dataclass

from payagg.application.audit import record
from payagg.application.ports import Clock, Entropy
from payagg.application.repositories import AnomalyFilter
from payagg.application.retry import retried
from payagg.application.store import Store, Transaction
from payagg.domain.anomaly import Anomaly
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.errors import ErrorCode, Refusal


@dataclass(frozen=True)
class Anomalies:
    store: Store
    clock: Clock
    entropy: Entropy

    async def listed(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        """A page, newest first; the next one follows the last id."""
        async with self.store.begin() as tx:
            return await tx.anomalies.page(wanted, limit)

    @retried
    async def acknowledge(self, anomaly_id: str, *, by: Actor) -> Anomaly:
        """Raises NOT_FOUND or ANOMALY_NOT_OPEN."""
        async with self.store.begin() as tx:
            anomaly = _known(await tx.anomalies.lock(anomaly_id))
            acknowledged = anomaly.acknowledge(by.name, self.clock.now())
            await self._save(tx, by, Action.ANOMALY_ACKNOWLEDGE, anomaly, acknowledged)
            return acknowledged

    @retried
    async def close(self, anomaly_id: str, reason: str, *, by: Actor) -> Anomaly:
        """`reason` says what was done. Raises VALIDATION_ERROR, NOT_FOUND or ANOMALY_ALREADY_CLOSED."""
        async with self.store.begin() as tx:
            anomaly = _known(await tx.anomalies.lock(anomaly_id))
            closed = anomaly.close(by.name, reason, self.clock.now())
            await self._save(tx, by, Action.ANOMALY_CLOSE, anomaly, closed)
            return closed

    async def _save(self, tx: Transaction, by: Actor, action: Action, before: Anomaly, after: Anomaly) -> None:
        await tx.anomalies.save(after)
        changes = changes_of(before, after, "status", "close_reason")
        await record(tx, self.entropy, self.clock.now(), by, action, after.id, changes)


def _known(anomaly: Anomaly | None) -> Anomaly:
    if anomaly is None:
        raise Refusal(ErrorCode.NOT_FOUND)
    return anomaly
