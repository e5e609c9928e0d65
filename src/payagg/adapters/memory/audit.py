"""The audit trail in memory."""

from payagg.adapters.memory.state import BrokenRule, MemoryRepository
from payagg.domain.audit import AuditEntry, AuditFilter


class MemoryAudit(MemoryRepository):
    async def add(self, entry: AuditEntry) -> None:
        if entry.id in self.state.audit:
            raise BrokenRule(f"entry {entry.id} exists")
        self.state.audit[entry.id] = entry

    async def list_entries(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        found = [entry for entry in self.state.audit.values() if wanted.admits(entry)]
        found.sort(key=lambda entry: entry.id, reverse=True)
        return [entry for entry in found if after is None or entry.id < after][:limit]
