"""A browser's session in the console, and when it is over."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.domain.audit import ActorRealm

SESSION_MAX = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)  # a request notes itself no more often


@dataclass(frozen=True)
class ConsoleSession:
    """`session` is the SHA-256 of what its cookie is known by; `address` is where its last request came from."""

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
