"""Merchant webhooks: endpoints, event types and subscriptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.checks import (
    check_bytes,
    check_flag,
    check_id,
    check_instant,
    check_integer,
    check_member,
    check_text,
    with_changes,
)
from payagg.domain.errors import invalid
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment, parse_url

ACTIVE_ENDPOINTS_MAX = 5  # per business, both environments together; interface, Limits
STORED_ENDPOINTS_MAX = 20  # per business and environment, active and not; see `crowded_out`
DESCRIPTION_MAX = 200  # interface, Limits
COUNT_MAX = 2**63 - 1  # the column is a 64-bit integer
EVENT_NAMES_MAX = 50  # in one subscription, repeats included
SECRET_BYTES = 32
OLD_SECRET_SIGNS_FOR = timedelta(hours=24)
OLD_SECRETS_MAX = 4  # that sign beside the present one
TEST_EVERY = timedelta(seconds=5)  # of one endpoint
TESTS_A_MINUTE = 20  # of one business's, over all processes
TESTS_AT_ONCE = 3  # of one business's, in one process
DEACTIVATE_AFTER = timedelta(hours=120)  # of nothing but failures
# To one endpoint at once, over all processes; one, once it fails.
CONCURRENCY_START, CONCURRENCY_MAX = 5, 50
ANSWERS_WELL = timedelta(seconds=1)  # an endpoint that accepts within this may get more at once


class EventType(Enum):
    PAYMENT_PENDING = "payment.pending"
    PAYMENT_SUCCESS = "payment.success"
    PAYMENT_FAILED = "payment.failed"
    PAYMENT_REVERSED = "payment.reversed"
    PAYMENT_LATE_SUCCESS = "payment.late_success"
    PAYMENT_REFUNDED = "payment.refunded"
    PAYMENT_DISPUTED = "payment.disputed"
    PAYMENT_ATTENTION = "payment.attention"


TEST_EVENT = "webhook.test"  # sent by the test call alone; nobody subscribes to it
EVENT_FOR = {
    Status.PENDING: EventType.PAYMENT_PENDING,
    Status.SUCCESS: EventType.PAYMENT_SUCCESS,
    Status.FAILED: EventType.PAYMENT_FAILED,
    Status.REVERSED: EventType.PAYMENT_REVERSED,
}
# Events of an anomaly, without a change of status.
ANOMALY_EVENT_FOR = {
    AnomalyKind.LATE_SUCCESS: EventType.PAYMENT_LATE_SUCCESS,
    AnomalyKind.SECOND_CHARGE: EventType.PAYMENT_LATE_SUCCESS,
    AnomalyKind.LATE_REVERSAL: EventType.PAYMENT_REFUNDED,
    AnomalyKind.PARTIAL_REFUND: EventType.PAYMENT_REFUNDED,
    AnomalyKind.DISPUTE: EventType.PAYMENT_DISPUTED,
    AnomalyKind.MISMATCH: EventType.PAYMENT_ATTENTION,
    AnomalyKind.NO_EVIDENCE: EventType.PAYMENT_ATTENTION,
}


def anomaly_event_of(anomaly: Anomaly, *, was_paid: bool) -> EventType | None:
    """The merchant's event for an anomaly; None when it is not sent, or not yet.

    A refund or a dispute of a payment that was ever paid is sent, whatever its status: an earlier one is sent once the
    payment is paid. A mismatch is sent when money came and it has a reason.
    """
    notice = ANOMALY_EVENT_FOR.get(anomaly.kind)
    if notice in (EventType.PAYMENT_REFUNDED, EventType.PAYMENT_DISPUTED):
        return notice if was_paid else None
    if notice is EventType.PAYMENT_ATTENTION and "reason" not in anomaly.details:
        return None
    return notice


def next_sequence(payment: Payment, known: Sequence[Anomaly]) -> int:
    """The number of the payment's next event: one more than the last change of status and the last notice have."""
    return max(payment.sequence, *(fact.event_sequence or 0 for fact in known), 0) + 1


def signing_keys(opened: bytes) -> list[bytes]:
    """The keys in an opened secret: one, or several that were replaced within a day, the newest first."""
    return [opened[at : at + SECRET_BYTES] for at in range(0, len(opened), SECRET_BYTES)]


def secret_context(endpoint_id: str) -> str:
    """What an endpoint's sealed secrets are bound to: a blob copied to another endpoint does not open."""
    return f"webhook-secret:{endpoint_id}"


@dataclass(frozen=True)
class Subscriber:
    """An active endpoint of a business, as far as its events need it; no `events` means all types."""

    id: str
    environment: Environment
    events: tuple[str, ...]

    def receives(self, event_type: EventType, environment: Environment) -> bool:
        return self.environment is environment and (not self.events or event_type.value in self.events)


@dataclass(frozen=True)
class WebhookEndpoint:
    """A merchant's address for events. Secrets are sealed blobs; an empty `events` means all types.

    Raises VALIDATION_ERROR for what no endpoint can be, with the field's JSON name.
    """

    id: str
    business_id: str
    environment: Environment
    url: str
    secret: bytes
    secret_last4: str
    created_at: datetime
    updated_at: datetime
    description: str | None = None
    events: tuple[str, ...] = ()
    is_active: bool = True
    previous_secret: bytes | None = None
    previous_secret_expires_at: datetime | None = None
    failing_since: datetime | None = None
    last_test_at: datetime | None = None
    successful: int = 0
    failed: int = 0
    concurrency: int = CONCURRENCY_START  # concurrent attempts

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        check_id(self.business_id, "businessId")
        check_member(self.environment, "environment", Environment)
        parse_endpoint_url(self.url, self.environment)
        if self.description is not None:
            check_text(self.description, "description", DESCRIPTION_MAX)
        if not isinstance(self.events, tuple) or parse_events(self.events) != self.events:
            raise invalid("events", "Must be a tuple of types without repeats, in the catalogue's order.")
        check_flag(self.is_active, "isActive")
        check_bytes(self.secret, "secret")
        check_text(self.secret_last4, "secretLast4", 4, 4)
        if self.previous_secret is not None:
            check_bytes(self.previous_secret, "previousSecret")
        if (self.previous_secret is None) is not (self.previous_secret_expires_at is None):
            raise invalid("previousSecretExpiresAt", "A replaced secret signs until then.")
        check_integer(self.successful, "successful", 0, COUNT_MAX)
        check_integer(self.failed, "failed", 0, COUNT_MAX)
        check_integer(self.concurrency, "concurrency", 1, CONCURRENCY_MAX)
        check_instant(self.created_at, "createdAt")
        check_instant(self.updated_at, "updatedAt")

    def rotate(self, secret: bytes, last4: str, now: datetime, previous: bytes | None = None) -> "WebhookEndpoint":
        """A new secret signs from now on; beside it for OLD_SECRET_SIGNS_FOR the old one, or the old ones that are
        sealed together in `previous`."""
        return with_changes(
            self,
            secret=secret,
            secret_last4=last4,
            previous_secret=previous or self.secret,
            previous_secret_expires_at=now + OLD_SECRET_SIGNS_FOR,
            updated_at=now,
        )

    def signing_secrets(self, now: datetime) -> tuple[bytes, ...]:
        """The sealed secrets that sign at `now`, newest first."""
        if self.previous_secret and self.previous_secret_expires_at and now < self.previous_secret_expires_at:
            return (self.secret, self.previous_secret)
        return (self.secret,)


def crowded_out(endpoints: Sequence[WebhookEndpoint]) -> list[WebhookEndpoint]:
    """The endpoints to remove when one business and environment stores too many: the inactive ones unchanged for
    longest, so none prevents a new one."""
    off = sorted((one for one in endpoints if not one.is_active), key=lambda one: (one.updated_at, one.id))
    return off[: max(0, len(endpoints) - STORED_ENDPOINTS_MAX)]


def parse_endpoint_url(text: str, environment: Environment) -> str:
    """LIVE endpoints must be HTTPS (interface); SANDBOX may be plain HTTP. Raises VALIDATION_ERROR on `url`."""
    return parse_url(text, "url", ("https",) if environment is Environment.LIVE else ("http", "https"))


def parse_events(names: Sequence[str]) -> tuple[str, ...]:
    """The subscribed types without repeats, in the catalogue's order; raises VALIDATION_ERROR on `events`."""
    known = [e.value for e in EventType]
    if not isinstance(names, list | tuple) or len(names) > EVENT_NAMES_MAX:
        raise invalid("events", f"Must be a list of at most {EVENT_NAMES_MAX} event types.")
    if any(name not in known for name in names):
        raise invalid("events", f"Unknown event type; use any of {', '.join(sorted(known))}.")
    return tuple(name for name in known if name in names)
