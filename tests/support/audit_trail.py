"""The audit trail as tests read it."""

from typing import Any

from payagg_testing.memory import MemoryStore

from payagg.application.ports.store import Store
from payagg.domain.audit import AuditEntry, AuditFilter


async def entries(store: Store, **wanted: Any) -> list[AuditEntry]:
    """All of them, newest first."""
    found: list[AuditEntry] = []
    async with store.begin() as tx:
        while page := await tx.audit.list_entries(AuditFilter(**wanted), found[-1].id if found else None, 1_000):
            found += page
    return found


def trail(store: Store, **wanted: Any) -> list[tuple[str, str, dict[str, tuple[Any, Any]]]]:
    """Action, object and changes (before, after) of each entry of a memory store, in the order of writing."""
    assert isinstance(store, MemoryStore)
    return [
        (e.action, e.object_id, {name: (c["before"], c["after"]) for name, c in e.changes.items()})
        for e in store.state.audit.values()
        if AuditFilter(**wanted).admits(e)
    ]
