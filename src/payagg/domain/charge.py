"""The charge at a provider: attempts, hand-offs, what providers report, and when to ask them again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from payagg.domain.payment import Payment, Trigger
from payagg.domain.values import CURRENCY, Environment

ATTEMPTS_MAX = 20  # per payment: each may be a call to a provider that anybody who holds the checkout link can cause
LEASE = timedelta(seconds=20)  # longer than a provider call may take, so a live claimant is never overtaken
VERIFY_EVERY = timedelta(seconds=2)  # at most one provider call per reference

ASK_JITTER = 0.1  # of the time since the hand-off, so that a burst of payments does not return as one

# When the reconciler asks about a PENDING payment, counted from its hand-off.
ASK_AFTER = (
    timedelta(minutes=1),
    timedelta(minutes=3),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=6),
    timedelta(hours=12),
    timedelta(hours=24),
    timedelta(hours=48),
    timedelta(hours=72),
)


def next_ask(since: datetime, now: datetime, chance: float) -> datetime | None:
    """The next instant of the schedule still ahead, a little spread by `chance` in [0, 1); None after the last.

    Instants that passed while no worker ran are skipped: one ask answers for all of them.
    """
    ahead = (after for after in ASK_AFTER if since + after > now)
    after = next(ahead, None)
    return since + after * (1 + ASK_JITTER * chance) if after is not None else None


class HandOffKind(Enum):
    REDIRECT = "REDIRECT"
    SDK = "SDK"
    SIMULATOR = "SIMULATOR"


@dataclass(frozen=True)
class HandOff:
    """Where the payer goes next. Returned unchanged to every repeat of `process`."""

    kind: HandOffKind
    checkout_url: str


class AttemptState(Enum):
    """CLAIMED: a process owns the call. HANDED_OFF: the payer was sent. REFUSED: certainly no charge.
    UNKNOWN: the provider's answer never came; only asking it tells."""

    CLAIMED = "CLAIMED"
    HANDED_OFF = "HANDED_OFF"
    REFUSED = "REFUSED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Attempt:
    """One try to start a charge. At most one attempt per payment can ever hold a hand-off."""

    reference: str
    number: int
    gateway_id: str | None  # None for the simulator, which is not a managed gateway
    gateway: str  # slug
    provider_reference: str
    token: str  # fencing: a result is recorded only while this still matches
    state: AttemptState
    lease_until: datetime
    scenario: str | None  # the simulator's outcome word; never a card number
    hand_off: HandOff | None
    created_at: datetime
    handed_off_at: datetime | None = None
    asks: int = 0  # how often the reconciler has asked
    next_ask_at: datetime | None = None
    last_ask_at: datetime | None = None

    @classmethod
    def claim(
        cls,
        payment: Payment,
        number: int,
        *,
        gateway: str,
        gateway_id: str | None,
        scenario: str | None,
        token: str,
        now: datetime,
    ) -> "Attempt":
        """A claim on the right to call the provider once, under a reference no earlier attempt used."""
        return cls(
            reference=payment.reference,
            number=number,
            gateway_id=gateway_id,
            gateway=gateway,
            provider_reference=provider_reference(payment.reference, number),
            token=token,
            state=AttemptState.CLAIMED,
            lease_until=now + LEASE,
            scenario=scenario,
            hand_off=None,
            created_at=now,
        )

    @property
    def is_handed_off(self) -> bool:
        """Whether the payer was sent to it, or may have been: only such an attempt can fail its payment."""
        return self.state is AttemptState.HANDED_OFF

    def is_held(self, now: datetime) -> bool:
        """Whether a live claimant may still be talking to the provider."""
        return self.state is AttemptState.CLAIMED and now < self.lease_until


def provider_reference(reference: str, number: int) -> str:
    """Attempt 1 carries our reference, attempt n `REF.n`: a provider never sees one reference twice."""
    return reference if number == 1 else f"{reference}.{number}"


def payment_reference(provider_reference: str) -> str:
    """The payment an attempt's reference belongs to."""
    return provider_reference.partition(".")[0]


@dataclass(frozen=True)
class Charge:
    """Everything a provider adapter needs to start or look up one charge. `amount` is kobo."""

    reference: str  # the attempt's provider reference
    amount: int
    currency: str
    environment: Environment
    credentials: Mapping[str, str] = field(repr=False)
    checkout_url: str  # our hosted page, where the payer returns
    business_name: str = ""
    customer_email: str | None = field(default=None, repr=False)
    customer_name: str | None = field(default=None, repr=False)
    customer_phone: str | None = field(default=None, repr=False)
    scenario: str | None = None
    handed_off_at: datetime | None = None
    now: datetime | None = None


class Outcome(Enum):
    """What a provider's word means for us. Unknown words mean PENDING: only evidence moves money."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    REVERSED = "REVERSED"
    PENDING = "PENDING"
    UNPAID = "UNPAID"  # the provider knows of no payment: evidence, used only to expire or to start anew


TRIGGER_FOR = {
    Outcome.SUCCEEDED: Trigger.SUCCEED,
    Outcome.FAILED: Trigger.FAIL,
    Outcome.REVERSED: Trigger.REVERSE,
}


@dataclass(frozen=True)
class ProviderReport:
    """A provider's statement about one charge, from an event or an answer, in our words.

    `amounts` holds every kobo figure that proves payment in full (a fee on top makes more than one honest figure);
    `environment` is None where the provider's body does not carry it and the path or secret decided.
    """

    provider_reference: str
    outcome: Outcome
    word: str  # the provider's own status word
    amounts: frozenset[int] = frozenset()
    currency: str = CURRENCY
    environment: Environment | None = None
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def mismatch(self, payment: Payment) -> str | None:
        """Which fact differs from the payment ('reference', 'environment', 'currency', 'amount'), or None.

        Whoever says that money moved must name its currency and amount; a failure may leave them out.
        """
        if payment_reference(self.provider_reference) != payment.reference:
            return "reference"
        if self.environment is not None and self.environment is not payment.environment:
            return "environment"
        if self.outcome not in TRIGGER_FOR:
            return None
        may_omit = self.outcome is Outcome.FAILED
        if self.currency != payment.currency and (self.currency or not may_omit):
            return "currency"
        if payment.amount not in self.amounts and (self.amounts or not may_omit):
            return "amount"
        return None

    def proves_unpaid(self, payment: Payment, attempt: Attempt) -> bool:
        """Whether it is evidence that nothing was paid, about this very attempt and in its environment."""
        is_about_it = self.provider_reference == attempt.provider_reference and self.mismatch(payment) is None
        return self.outcome is Outcome.UNPAID and is_about_it


class FaultKind(Enum):
    """Why a provider call gave no usable answer. `is_certain` = we know that no charge was made."""

    TIMEOUT = "TIMEOUT"
    UNREACHABLE = "UNREACHABLE"
    MALFORMED = "MALFORMED"
    SERVER_ERROR = "SERVER_ERROR"
    RATE_LIMITED = "RATE_LIMITED"
    BAD_CREDENTIALS = "BAD_CREDENTIALS"
    REJECTED = "REJECTED"
    DUPLICATE = "DUPLICATE"  # the reference exists there already: an earlier call arrived after all

    @property
    def is_certain(self) -> bool:
        return self in (FaultKind.BAD_CREDENTIALS, FaultKind.REJECTED, FaultKind.RATE_LIMITED)

    @property
    def is_unhealthy(self) -> bool:
        """Whether it counts against the provider's health rather than against the request."""
        return self not in (FaultKind.REJECTED, FaultKind.DUPLICATE)


class ProviderFault(Exception):
    """Raised by provider adapters alone; the message carries no secret and no personal data."""

    def __init__(self, kind: FaultKind, message: str = "") -> None:
        super().__init__(f"{kind.value}: {message}" if message else kind.value)
        self.kind = kind


class AnomalyKind(Enum):
    """Facts that must not move a payment and must not be lost."""

    LATE_SUCCESS = "LATE_SUCCESS"
    LATE_FAILURE = "LATE_FAILURE"
    LATE_REVERSAL = "LATE_REVERSAL"
    MISMATCH = "MISMATCH"
    WRONG_PROVIDER = "WRONG_PROVIDER"
    WRONG_ENVIRONMENT = "WRONG_ENVIRONMENT"
    UNKNOWN_REFERENCE = "UNKNOWN_REFERENCE"
    PARTIAL_REFUND = "PARTIAL_REFUND"
    NO_EVIDENCE = "NO_EVIDENCE"


LATE_FOR = {
    Trigger.SUCCEED: AnomalyKind.LATE_SUCCESS,
    Trigger.FAIL: AnomalyKind.LATE_FAILURE,
    Trigger.REVERSE: AnomalyKind.LATE_REVERSAL,
}


@dataclass(frozen=True)
class Anomaly:
    """Kept for operators: listed by `doctor`, shown by `explain`."""

    id: str
    reference: str | None
    kind: AnomalyKind
    source: str  # `verify`, `reconciler`, `process`, or `event:` with the provider
    details: Mapping[str, Any]
    at: datetime

    @property
    def is_from_asking(self) -> bool:
        return not self.source.startswith("event:")


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
        return self.open_until is not None and now < self.open_until

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
