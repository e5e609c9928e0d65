"""Which cell has a key, a business or a moved reference: what the cells said, kept for a while.

What is kept is a guess that saves a question and no proof: the cell itself authenticates every request, and an entry
that a cell denies is asked anew.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from payagg.entrypoints.http.server.places import By, Destination
from payagg.entrypoints.route.metrics import FOUND, LOOKUPS, NOT_ANSWERED, UNKNOWN, UNREACHABLE
from payagg.entrypoints.route.upstream import Unreachable

KEPT_MAX = 100_000  # names, about 200 bytes each
CHECK_AGAIN_SECONDS = 2.0  # the least between two questions about one name: a revoked key costs no question a request
QUESTIONS = {By.KEY: "keys", By.BUSINESS: "businesses"}
HAS, MISDIRECTED, MISSING = 200, 421, 404


class CellLookup(Protocol):
    """A cell that can be asked; Upstream is one."""

    async def ask(self, path: str) -> tuple[int, str]:
        """Status, and the cell that the answer names, if any. Raises Unreachable."""


@dataclass
class Entry:
    cell: str
    asked_at: float


class NobodyKnows(Exception):
    """Every cell answered, and none has it."""


class CellsAway(Exception):
    """Nobody has it among those who answered, and not everyone did."""


class Directory:
    def __init__(self, cells: Mapping[str, CellLookup], most: int = KEPT_MAX) -> None:
        self._cells = cells
        self._most = most
        self._entries: OrderedDict[Destination, Entry] = OrderedDict()
        self._asking: dict[Destination, asyncio.Task[str]] = {}

    def find(self, place: Destination) -> str | None:
        entry = self._entries.get(place)
        if entry is None:
            return None
        self._entries.move_to_end(place)
        return entry.cell

    def keep(self, place: Destination, cell: str) -> None:
        self._entries[place] = Entry(cell, monotonic())
        self._entries.move_to_end(place)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def forget(self, place: Destination) -> None:
        self._entries.pop(place, None)

    def may_ask_again(self, place: Destination) -> bool:
        """Whether the entry is old enough to be doubted."""
        entry = self._entries.get(place)
        return entry is None or monotonic() - entry.asked_at >= CHECK_AGAIN_SECONDS

    async def ask(self, place: Destination) -> str:
        """The cell that has it, by asking all at once; who asks meanwhile shares the answer. Raises NobodyKnows or
        CellsAway."""
        asking = self._asking.get(place)
        if asking is None:
            asking = self._asking[place] = asyncio.create_task(self._ask(place))
            asking.add_done_callback(lambda done: self._on_answer(place, done))
        return await asyncio.shield(asking)

    def _on_answer(self, place: Destination, done: asyncio.Task[str]) -> None:
        del self._asking[place]
        if not done.cancelled():
            done.exception()  # whoever asked may have gone

    async def _ask(self, place: Destination) -> str:
        """The first that has it decides; the others are not awaited, as one of them may be frozen."""
        path = f"{QUESTIONS[place.by]}/{place.name}"
        asking = [asyncio.create_task(_question(name, cell, path)) for name, cell in self._cells.items()]
        said: list[tuple[str, int, str]] = []
        try:
            for answer in asyncio.as_completed(asking):
                said.append(await answer)
                if said[-1][1] == HAS:
                    break
        finally:
            for task in asking:
                task.cancel()
        has = [name for name, status, _ in said if status == HAS]
        moved = [to for _, status, to in said if status == MISDIRECTED and to in self._cells]
        found = next(iter(has or moved), None)
        if found is not None:
            LOOKUPS.labels(place.by.value, FOUND).inc()
            self.keep(place, found)
            return found
        is_sure = all(status == MISSING for _, status, _ in said)
        LOOKUPS.labels(place.by.value, UNKNOWN if is_sure else NOT_ANSWERED).inc()
        if is_sure:
            raise NobodyKnows
        raise CellsAway


async def _question(name: str, cell: CellLookup, path: str) -> tuple[str, int, str]:
    try:
        return name, *await cell.ask(path)
    except Unreachable:
        UNREACHABLE.labels(name).inc()
        return name, 0, ""
