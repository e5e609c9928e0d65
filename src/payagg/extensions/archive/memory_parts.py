"""Parts of the archive, each a folder of files."""

from dataclasses import replace
from datetime import datetime

from payagg.adapters.memory.state import MemoryRepository
from payagg.application.ports.outside import Conflict
from payagg.domain.archived import ArchivePart


class MemoryArchiveParts(MemoryRepository):
    async def begin(self, day: str, folder: str, now: datetime) -> ArchivePart:
        number = max(self.state.archive_parts, default=0) + 1
        self.state.archive_parts[number] = part = ArchivePart(number, day, folder, now)
        return part

    async def finish(self, part: ArchivePart) -> None:
        known = self.state.archive_parts.get(part.number)
        if known is None or known.manifest is not None:
            raise Conflict("the part was given up")
        self.state.archive_parts[part.number] = part

    async def give_up(self, number: int) -> bool:
        part = self.state.archive_parts.get(number)
        if part is None or part.manifest is not None:
            return False
        del self.state.archive_parts[number]
        return True

    async def of_day(self, day: str) -> list[ArchivePart]:
        own = [part for part in self.state.archive_parts.values() if part.day == day and part.removed_at is None]
        return sorted(own, key=lambda part: part.number)

    async def unfinished_days(self) -> list[str]:
        return sorted({part.day for part in self.state.archive_parts.values() if part.removed_at is None})

    async def close(self, number: int, now: datetime) -> None:
        self.state.archive_parts[number] = replace(self.state.archive_parts[number], removed_at=now)
