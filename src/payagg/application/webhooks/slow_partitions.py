"""Which partitions are slow, as one process sees it: those that must not take all of its attempts."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from payagg.domain.webhook import ANSWERS_WELL

SLOW_FOR = 60.0  # seconds
SLOW_MAX = 1_000  # partitions that are remembered


@dataclass
class SlowPartitions:
    """A partition is slow once an attempt has run for longer than ANSWERS_WELL, and for SLOW_FOR after that: whatever
    the answer, as what hangs may accept in the end."""

    _until: dict[str, float] = field(default_factory=dict, init=False)  # on the event loop's clock, the oldest first

    def current(self) -> frozenset[str]:
        now = asyncio.get_running_loop().time()
        self._until = {partition: until for partition, until in self._until.items() if until > now}
        return frozenset(self._until)

    @contextmanager
    def watching(self, partition: str) -> Iterator[None]:
        """Around one attempt."""
        timer = asyncio.get_running_loop().call_later(ANSWERS_WELL.total_seconds(), self._note, partition)
        try:
            yield
        finally:
            timer.cancel()

    def _note(self, partition: str) -> None:
        self._until.pop(partition, None)
        self._until[partition] = asyncio.get_running_loop().time() + SLOW_FOR
        if len(self._until) > SLOW_MAX:
            del self._until[next(iter(self._until))]
