"""Time and randomness from the operating system. Nothing else in the product reads a clock or draws a number."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import structlog

from payagg.application.telemetry import observe
from payagg.domain.values import REFERENCE_SUFFIXES, make_reference

APART_SECONDS = 5.0  # between a machine's clock and the database's, beyond which an operator must act
_log = structlog.get_logger("payagg.clock")


class SystemClock:
    """The machine's own clock, for tools that have no database."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class DatabaseClock:
    """The database's clock, continued by this process's monotonic one between synchronisations.

    Every process then agrees on when a payment expires, and setting a machine's clock back un-expires nothing.
    """

    def __init__(self, ask: Callable[[], Awaitable[datetime]]) -> None:
        self._ask = ask
        self._offset = time.time() - time.monotonic()  # seconds, as the clocks below: to half a microsecond
        self._is_apart = False

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.monotonic() + self._offset, UTC)

    async def synchronise(self) -> None:
        """Sets the database's time; half the round trip is the best estimate of the answer's age."""
        before = time.monotonic()
        answer = await self._ask()
        after = time.monotonic()
        self._offset = answer.timestamp() - (before + after) / 2
        self._compare((datetime.now(UTC) - self.now()).total_seconds())

    def _compare(self, ahead: float) -> None:
        """Reports how many seconds this machine's clock is ahead: no rule uses it, but one of the two is wrong."""
        observe("clock_difference_seconds", abs(ahead))
        is_apart = abs(ahead) > APART_SECONDS
        if is_apart and not self._is_apart:
            _log.warning(apart(ahead))
        self._is_apart = is_apart

    async def keep(self, every: float = 30.0) -> None:
        """Synchronises for ever; while the database is down the last synchronisation stays in force."""
        while True:
            await asyncio.sleep(every)
            try:
                await self.synchronise()
            except Exception:  # noqa: BLE001, S112 - the monotonic clock continues alone
                continue


def apart(ahead: float) -> str:
    """The warning for a machine whose clock is this many seconds ahead of the database's."""
    direction = "ahead of" if ahead > 0 else "behind"
    return (
        f"This machine's clock is {abs(ahead):.0f} s {direction} the database's, which every rule goes by: see that NTP"
        " runs on both machines."
    )


class SystemEntropy:
    """Randomness from the operating system's generator."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def reference(self, now: datetime) -> str:
        # One draw: 64 bits over 31 favour no suffix by more than one part in four billion.
        return make_reference(self._prefix, now, int.from_bytes(os.urandom(8)) % REFERENCE_SUFFIXES)

    def id(self, prefix: str, now: datetime) -> str:
        return f"{prefix}_{int(now.timestamp() * 1000):012x}{os.urandom(10).hex()}"

    def hex(self, size: int) -> str:
        return os.urandom(size).hex()

    def bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def chance(self) -> float:
        return int.from_bytes(os.urandom(4)) / 2**32
