"""One gateway as the requirements see it, in their own words: as in model.py, no rule of the domain is imported."""

from dataclasses import dataclass
from datetime import datetime, timedelta

DRAIN = timedelta(minutes=30)
SETTLING = timedelta(hours=72)  # after its deletion no secret serves, whatever is open


@dataclass
class GatewayModel:
    """One gateway. A slug may have several: at most one that lives, beside those deleted before it."""

    status: str = "DISABLED"
    drains_until: datetime | None = None
    deleted_at: datetime | None = None
    has_credentials: bool = True

    def seen(self, now: datetime) -> str | None:
        """Its status to anybody who looks; None: there is no such gateway."""
        if self.deleted_at is not None:
            return None
        is_drained = self.drains_until is not None and now >= self.drains_until
        return "DISABLED" if self.status == "DRAINING" and is_drained else self.status

    def refusal_of(self, move: str, now: datetime) -> str | None:
        seen = self.seen(now)
        if move == "CREATE":
            return "GATEWAY_SLUG_EXISTS" if seen is not None else None
        if seen is None:
            return "NOT_FOUND"
        if move == "ENABLE":
            return "GATEWAY_ALREADY_ENABLED" if seen == "ACTIVE" else None
        if move == "DISABLE":
            return "GATEWAY_NOT_ACTIVE" if seen != "ACTIVE" else None
        return "GATEWAY_IN_USE" if seen != "DISABLED" else None

    def move(self, move: str, now: datetime) -> None:
        if move == "ENABLE":
            self.status = "ACTIVE"
        elif move == "DISABLE":
            self.status, self.drains_until = "DRAINING", now + DRAIN
        else:
            self.deleted_at = now

    def sweep(self, now: datetime, has_open_attempts: bool) -> None:
        if self.deleted_at is not None and (not has_open_attempts or now >= self.deleted_at + SETTLING):
            self.has_credentials = False
