"""A provider's recent health: when it is shown unavailable, and who may try it again first."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.domain.attempt import LEASE
from payagg.domain.values import CLOCK_SLACK, Environment


@dataclass(frozen=True)
class Health:
    """A provider's recent health in one environment, shared by all processes. Opens after FAULTS_MAX in a row.

    Once a pause is over a single call is let through as a probe: until it ends, or dies and its own short pause
    passes, everybody else still sees the provider closed.
    """

    gateway: str
    environment: Environment
    faults: int = 0
    open_until: datetime | None = None
    open_for: timedelta = timedelta(0)

    FAULTS_MAX = 5
    FIRST_PAUSE = timedelta(seconds=30)
    LONGEST_PAUSE = timedelta(minutes=10)
    PROBE = LEASE

    def is_open(self, now: datetime) -> bool:
        """Whether the provider is shown unavailable at `now`."""
        return self.open_until is not None and now < self.open_until <= now + self.LONGEST_PAUSE + CLOCK_SLACK

    def admit(self, now: datetime) -> "Health | None":
        """The health once a call is let through at `now`, or None when none may go. After a pause the admitted call
        is the probe, one fault away from the next pause."""
        if self.is_open(now):
            return None
        if not self.open_for:
            return self
        return Health(self.gateway, self.environment, self.FAULTS_MAX - 1, now + self.PROBE, self.open_for)

    def after(self, ok: bool, now: datetime) -> "Health":
        """The health after one call: a success closes it, a fault counts and may open it for twice as long."""
        if ok:
            return Health(self.gateway, self.environment)
        if self.is_open(now) and self.faults >= self.FAULTS_MAX:
            return self  # a call from before the pause: many of them at once must not stretch it
        faults = self.faults + 1
        if faults < self.FAULTS_MAX:
            return Health(self.gateway, self.environment, faults, self.open_until, self.open_for)
        pause = min(max(self.open_for * 2, self.FIRST_PAUSE), self.LONGEST_PAUSE)
        return Health(self.gateway, self.environment, faults, now + pause, pause)
