"""Time that moves only when told and chance that repeats: the same seed gives the same run."""

import random
from datetime import UTC, datetime, timedelta

from payagg.domain.values import REFERENCE_SUFFIXES, make_reference

START = datetime(2025, 1, 31, 12, 0, tzinfo=UTC)


class Chance(random.Random):
    """Draws that repeat with their seed, a number or a text, in every process."""

    def happens(self, share: float) -> bool:
        """True in `share` of all draws, from 0 to 1; draws nothing where it cannot be."""
        return share > 0 and self.random() < share


class ManualClock:
    """Stands still until it is set or moved on; it may be set back, as real clocks are."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def move(self, by: timedelta) -> None:
        self._now += by

    def set(self, to: datetime) -> None:
        self._now = to


class SeededEntropy:
    """Chance from a seed, in the same forms as the system's; never for anything that must be secret."""

    def __init__(self, seed: int = 0, prefix: str = "PAY") -> None:
        self._prefix = prefix
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def reference(self, now: datetime) -> str:
        return make_reference(self._prefix, now, self._random.randrange(REFERENCE_SUFFIXES))

    def id(self, prefix: str, now: datetime) -> str:
        return f"{prefix}_{int(now.timestamp() * 1000):012x}{self.hex(10)}"

    def hex(self, size: int) -> str:
        return self.bytes(size).hex()

    def bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def chance(self) -> float:
        return self._random.random()
