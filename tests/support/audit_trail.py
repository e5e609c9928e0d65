"""The audit trail as tests read it."""

from typing import Any

from payagg.adapters.memory import MemoryStore
from payagg.application.store import Store
from payagg.domain.audit import AuditEntry, AuditFilter


async def entries(store: Store, **wanted: Any) -> list[AuditEntry]:
    """Newest first."""
    async with store.begin() as tx:
        return await tx.audit.listed(AuditFilter(**wanted), None, 1_000)


def trail(store: Store, **wanted: Any) -> list[tuple[str, str, dict[str, tuple[Any, Any]]]]:
    """Action, object and changes (before, after) of each entry of a memory store, in the order of writing."""
    assert isinstance(store, MemoryStore)
    return [
        (e.action, e.object_id, {name: (c["before"], c["after"]) for name, c in e.changes.items()})
        for e in store.state.audit.values()
        if AuditFilter(**wanted).admits(e)
    ]
