"""Which partitions are slow, as one process sees it: those that must not take all of its attempts."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from payagg.domain.webhook import ANSWERS_WELL

SLOW_AFTER = ANSWERS_WELL.total_seconds()  # of one attempt
SLOW_FOR = 60.0  # seconds
SLOW_MAX = 1_000  # partitions that are remembered


@dataclass
class SlowPartitions:
    """A partition is slow once an attempt has run for longer than SLOW_AFTER, and for SLOW_FOR after that: whatever the
    answer, as what hangs may accept in the end. Times are the event loop's: a timer for each attempt takes 7 % of a
    delivery."""

    _until: dict[str, float] = field(default_factory=dict, init=False)  # the oldest first

    def current(self, running: Iterable[tuple[str, float]]) -> frozenset[str]:
        """`running` is the partition and the beginning of each attempt under way, the oldest first."""
        now = asyncio.get_running_loop().time()
        for partition, began in running:
            if now - began <= SLOW_AFTER:
                break
            self._note(partition, now)
        self._until = {partition: until for partition, until in self._until.items() if until > now}
        return frozenset(self._until)

    def note_end(self, partition: str, began: float) -> None:
        """Of an attempt."""
        now = asyncio.get_running_loop().time()
        if now - began > SLOW_AFTER:
            self._note(partition, now)

    def _note(self, partition: str, now: float) -> None:
        self._until.pop(partition, None)
        self._until[partition] = now + SLOW_FOR
        if len(self._until) > SLOW_MAX:
            del self._until[next(iter(self._until))]
