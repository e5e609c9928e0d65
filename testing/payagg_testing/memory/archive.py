"""Archived payments in memory, and parts of the archive, each a folder of files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import Enum
from typing import Any

from payagg.application.ports.outside import Conflict
from payagg.domain.anomaly import AnomalyStatus
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.extensions.archive.tables import TABLES, History, Row
from payagg_testing.memory.state import MemoryRepository


class MemoryArchive(MemoryRepository):
    async def next_with_history(self, after: str) -> str | None:
        return min((reference for reference, _ in self.state.transitions if reference > after), default=None)

    async def ready(self, after: str, until: str, before: datetime, limit: int) -> tuple[list[str], str | None]:
        walked = sorted({reference for reference, _ in self.state.transitions if after < reference <= until})[:limit]
        made_before = [own for own in walked if self.state.payments[own].created_at < before]
        return await self.lock_ready(made_before), walked[-1] if walked else None

    async def lock_ready(self, references: Sequence[str]) -> list[str]:
        state = self.state
        kept: set[str | None] = {reference for reference, _ in state.events}
        kept |= {one.reference for one in state.deliveries.values()}
        kept |= {one.reference for one in state.anomalies.values() if one.status is not AnomalyStatus.CLOSED}
        kept |= {one.reference for one in state.attempts.values() if one.next_ask_at is not None}
        return sorted(own for own in state.payments.keys() & set(references) - kept if state.payments[own].is_final)

    async def histories(self, references: Sequence[str]) -> History:
        state, wanted = self.state, set(references)
        rows: Mapping[str, Mapping[Any, Any]] = {
            "payments": state.payments,
            "transitions": state.transitions,
            "attempts": state.attempts,
            "provider_calls": state.calls,
        }
        found = {
            table: [_row(table, one) for one in rows[table].values() if one.reference in wanted] for table in TABLES
        }
        return {table: sorted(own, key=lambda row: row[:2]) for table, own in found.items()}

    async def move(self, payments: Sequence[ArchivedPayment], calls: Sequence[tuple[str, str]]) -> None:
        own = {payment.reference: payment for payment in payments}
        self.state.archived |= own
        for table in (self.state.transitions, self.state.attempts):
            for key in [key for key in table if key[0] in own]:
                del table[key]
        for _, call_id in calls:
            del self.state.calls[call_id]

    async def find_archived(self, references: Sequence[str]) -> set[str]:
        return self.state.archived.keys() & set(references)


def _row(table: str, item: Any) -> Row:
    hand_off = getattr(item, "hand_off", None)
    own = {"hand_off_kind": hand_off.kind if hand_off is not None else None}
    values = (own[name] if name in own else getattr(item, name) for name in TABLES[table])
    return tuple(value.value if isinstance(value, Enum) else value for value in values)


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
