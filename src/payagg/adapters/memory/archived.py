"""What is left here of archived payments, in memory."""

from payagg.adapters.memory.state import MemoryRepository
from payagg.domain.archived import ArchivedPayment, ArchivePart


class MemoryArchivedPayments(MemoryRepository):
    async def find(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None:
        found = self.state.archived.get(reference)
        return (found, self.state.archive_parts[found.part]) if found is not None else None
