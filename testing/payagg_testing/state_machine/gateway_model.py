"""One gateway as the requirements see it, in their own words: as in model.py, no rule of the domain is imported."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

DRAIN = timedelta(minutes=30)
SETTLING = timedelta(hours=72)  # after its deletion nobody is asked any more, whatever is open
OVERLAP = timedelta(hours=24)  # a replaced secret proves events so long
PROVES = timedelta(days=180)  # after its deletion: then its events prove nothing any more


@dataclass
class GatewayModel:
    """One gateway. A slug may have several: at most one that lives, beside those deleted before it."""

    status: str = "DISABLED"
    drains_until: datetime | None = None
    deleted_at: datetime | None = None
    has_credentials: bool = True
    account: int = 1
    # By account: until when its events are proved, None for the one on file.
    secrets: dict[int, datetime | None] = field(default_factory=lambda: {1: None})

    def visible_status(self, now: datetime) -> str | None:
        """Its status to anybody who looks; None: there is no such gateway."""
        if self.deleted_at is not None:
            return None
        is_drained = self.drains_until is not None and now >= self.drains_until
        return "DISABLED" if self.status == "DRAINING" and is_drained else self.status

    def refusal_of(self, move: str, now: datetime) -> str | None:
        seen = self.visible_status(now)
        if move == "CREATE":
            return "GATEWAY_SLUG_EXISTS" if seen is not None else None
        if seen is None:
            return "NOT_FOUND"
        if move == "ENABLE":
            return "GATEWAY_ALREADY_ENABLED" if seen == "ACTIVE" else None
        if move == "ROTATE":
            return None
        if move == "DISABLE":
            return "GATEWAY_NOT_ACTIVE" if seen != "ACTIVE" else None
        return "GATEWAY_IN_USE" if seen != "DISABLED" else None

    def move(self, move: str, now: datetime) -> None:
        if move == "ENABLE":
            self.status = "ACTIVE"
        elif move == "DISABLE":
            self.status, self.drains_until = "DRAINING", now + DRAIN
        elif move == "ROTATE":
            self.secrets[self.account] = now + OVERLAP
            self.account += 1
            self.secrets[self.account] = None
        else:
            self.deleted_at = now

    def proves(self, account: int, now: datetime) -> bool:
        """Whether an event that is signed by the account is believed to be the provider's."""
        until = self.secrets.get(account, now)
        return until is None or now < until

    def sweep(self, now: datetime, has_open_attempts: bool) -> None:
        is_settled = not has_open_attempts or (self.deleted_at is not None and now >= self.deleted_at + SETTLING)
        if self.deleted_at is not None and self.has_credentials and is_settled:
            self.has_credentials = False
            proven = [account for account in self.secrets if self.proves(account, now)]
            self.secrets = dict.fromkeys(proven, self.deleted_at + PROVES)
