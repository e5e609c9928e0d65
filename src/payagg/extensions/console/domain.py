"""A session of the console: a pure value."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.domain.audit import ActorRealm

SESSION_MAX = timedelta(hours=12)
SESSION_IDLE = timedelta(minutes=30)  # without a request
SEEN_EVERY = timedelta(minutes=1)  # a request is recorded at most this often


@dataclass(frozen=True)
class ConsoleSession:
    """`session` is the SHA-256 of its form token; `address` is that of its last request."""

    session: bytes
    realm: ActorRealm
    subject: str
    address: str | None
    started_at: datetime
    seen_at: datetime
    ends_at: datetime

    def is_over(self, now: datetime, idle: timedelta) -> bool:
        return now >= min(self.ends_at, self.seen_at + idle)

    def is_seen_stale(self, now: datetime) -> bool:
        return now - self.seen_at >= SEEN_EVERY
