"""Two kinds of rate limit: a sliding window, exact over any minute; and a token bucket, which is cheap."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import ceil

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import CLOCK_SLACK

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MARKS_MAX = 1_000  # instants kept of one bucket, whatever its limit


@dataclass(frozen=True)
class RateLimit:
    """At most `most` hits in any `window`.

    A hit is kept as a mark, its instant in grains since 1970. Up to MARKS_MAX hits the grain is the clock's own; above
    that hits of one grain share a mark, which is its end, so that a bucket stays small and opens at most a grain late.
    """

    most: int
    window: timedelta = timedelta(minutes=1)

    @cached_property
    def rate(self) -> float:
        """Hits a second over a whole window."""
        return self.most / self.window.total_seconds()

    @property
    def grain(self) -> timedelta:
        return timedelta(microseconds=1) if self.most <= MARKS_MAX else self.window / MARKS_MAX

    def mark(self, now: datetime) -> int:
        return -((EPOCH - now) // self.grain)

    def oldest(self, now: datetime) -> int:
        """The oldest mark that still counts."""
        return (now - self.window - EPOCH) // self.grain + 1

    def newest(self, now: datetime) -> int:
        """The newest mark that counts: a later one was made by a clock that was ahead, and holds nobody up."""
        return self.mark(now + CLOCK_SLACK)

    def end_of(self, mark: int) -> datetime:
        """From when on that mark no longer counts."""
        return EPOCH + mark * self.grain + self.window


class TokenBucket:
    """A limit's `most` tokens at first, and never more; as many again come back evenly over its window. So a burst and
    the rate pass, which in some window is up to twice the limit."""

    __slots__ = ("_at", "left")

    def __init__(self, limit: RateLimit, now: datetime) -> None:
        self.left = float(limit.most)
        self._at = now

    def take(self, limit: RateLimit, now: datetime, tokens: int = 1) -> float:
        """Takes so many tokens, at most `most`; where there are fewer it takes none and says in how many seconds there
        are enough. 0 = taken."""
        left = self.left
        if now > self._at:  # not where the clock was set back
            left += (now - self._at).total_seconds() * limit.rate
            if left > limit.most:
                left = float(limit.most)
            self._at = now
        elif self._at > now + CLOCK_SLACK:
            self._at = now  # it was ahead, and nobody waits until then
        if left < tokens:
            self.left = left
            return (tokens - left) / limit.rate
        self.left = left - tokens
        return 0.0

    def give_back(self, limit: RateLimit) -> None:
        self.left = min(limit.most, self.left + 1)

    def charge(self, tokens: int) -> None:
        """Takes what is known only afterwards, more than there is where need be: until that has come back, `take` of 0
        says in how many seconds it will have."""
        self.left -= tokens


def over_limit(seconds: float, message: str | None = None) -> Refusal:
    """RATE_LIMITED of a caller for whom there is room in so many seconds."""
    return Refusal(ErrorCode.RATE_LIMITED, message, retry_after=max(1, ceil(seconds)))
