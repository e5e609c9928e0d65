"""An event loop that never waits: its time jumps to the next timer, and what is ready runs in a drawn order."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from typing import Any

from payagg_testing.clocks import Chance


class NothingLeft(Exception):
    """Every task waits for something that no timer and no task will bring."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs on no file and no clock: sockets, threads and subprocesses are errors. Seconds begin at 0.

    `each_turn` is called once before each round of what is ready; what it raises ends the run.
    """

    _ready: "deque[asyncio.Handle]"  # asyncio's own

    def __init__(self, order: Chance, each_turn: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._seconds = 0.0
        self._order = order
        self._each_turn = each_turn
        # Coarser than what a sum of seconds can tell apart after years; otherwise a timer might never be due.
        self._clock_resolution = 1e-6
        self._selector = self  # what asyncio asks whether anything came, and how long to wait for it
        self.turns = 0

    def time(self) -> float:
        return self._seconds

    def select(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing ever comes from outside, so the whole wait passes at once."""
        self.turns += 1
        self._each_turn()
        if timeout is None:
            raise NothingLeft
        self._seconds += timeout
        if len(self._ready) > 1:
            self._order.shuffle(self._ready)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """No other thread exists to wake this loop."""
