"""What most use cases work with, and the entry that a change leaves in the audit trail."""

from dataclasses import dataclass
from datetime import datetime

from payagg.application.ports.outside import Clock, Entropy
from payagg.application.ports.store import Store, Transaction
from payagg.domain.audit import Action, Actor, AuditEntry, Changes


@dataclass(frozen=True)
class UseCase:
    store: Store
    clock: Clock
    entropy: Entropy

    async def record(
        self,
        tx: Transaction,
        by: Actor,
        action: Action,
        object_id: str,
        changes: Changes | None = None,
        *,
        business_id: str | None = None,
    ) -> None:
        """Adds an entry in the transaction of the change. `changes` None = the action needs no fields; empty = nothing
        changed, so no entry is written."""
        await record(tx, self.entropy, self.clock.now(), by, action, object_id, changes, business_id=business_id)


async def record(
    tx: Transaction,
    entropy: Entropy,
    now: datetime,
    by: Actor,
    action: Action,
    object_id: str,
    changes: Changes | None = None,
    *,
    business_id: str | None = None,
) -> None:
    """As `UseCase.record`."""
    if changes is None or changes:
        id = entropy.id("aud", now)
        await tx.audit.add(AuditEntry.of(id, now, by, action, object_id, changes or {}, business_id))
