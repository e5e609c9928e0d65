"""Merchant webhooks: endpoints, event types, subscriptions, and the schedule of attempts."""

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
    restore,
    with_changes,
)
from payagg.domain.errors import invalid
from payagg.domain.payment import SEQUENCE_MAX, Payment, Status
from payagg.domain.values import Environment, parse_reference, parse_url

ACTIVE_ENDPOINTS_MAX = 5  # per business, both environments together; interface, Limits
STORED_ENDPOINTS_MAX = 20  # per business and environment, active and not; see `crowded_out`
DESCRIPTION_MAX = 200  # interface, Limits
EVENT_NAME_MAX = 50
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
RETENTION = timedelta(days=30)
JITTER = 0.2
# Attempts in a row lost with their workers, from which on a delivery is sent alone in its worker. One loss proves
# little: a worker has hundreds of deliveries in flight when it dies.
ALONE_FROM = 2

# Delay before attempt 1, 2, ...; the LIVE row is the schedule Standard Webhooks recommends (75 h 35 m in all).
SCHEDULE: dict[Environment, tuple[timedelta, ...]] = {
    Environment.LIVE: (
        timedelta(0),
        timedelta(seconds=5),
        timedelta(minutes=5),
        timedelta(minutes=30),
        timedelta(hours=2),
        timedelta(hours=5),
        timedelta(hours=10),
        timedelta(hours=14),
        timedelta(hours=20),
        timedelta(hours=24),
    ),
    Environment.SANDBOX: (timedelta(0), timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)),
}

LONGEST_DELAY = 2 * max(SCHEDULE[Environment.LIVE])  # a receiver may ask for twice the planned one


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


class DeliveryStatus(Enum):
    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


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


@dataclass(frozen=True)
class Event:
    """An event for a merchant, stored once as the bytes that every attempt sends. `id` is also `webhook-id`.

    Raises VALIDATION_ERROR for what no event can be, with the field's JSON name.
    """

    id: str
    reference: str
    sequence: int
    type: str
    business_id: str
    environment: Environment
    body: bytes
    created_at: datetime

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        parse_reference(self.reference)
        check_integer(self.sequence, "sequence", 1, SEQUENCE_MAX)
        check_text(self.type, "type", EVENT_NAME_MAX, 1)
        check_id(self.business_id, "businessId")
        check_member(self.environment, "environment", Environment)
        check_bytes(self.body, "data")
        check_instant(self.created_at, "createdAt")

    @classmethod
    def of(cls, payment: Payment, id: str, type: str, sequence: int, body: bytes, created_at: datetime) -> "Event":
        """The event of a stored payment, whose fields were checked when it came in. Unchecked: 2 % of an event."""
        fields = {
            "id": id,
            "reference": payment.reference,
            "sequence": sequence,
            "type": type,
            "business_id": payment.business_id,
            "environment": payment.environment,
            "body": body,
            "created_at": created_at,
        }
        return restore(cls, fields)


@dataclass(frozen=True)
class Delivery:
    """One event on its way to one address: an endpoint, or the payment's own webhookUrl (`endpoint_id` None).

    Raises VALIDATION_ERROR for what no delivery can be, with the field's JSON name.
    """

    id: str
    event_id: str
    event_type: str
    reference: str
    sequence: int
    business_id: str
    environment: Environment
    endpoint_id: str | None
    url: str | None
    partition: str
    created_at: datetime
    status: DeliveryStatus = DeliveryStatus.PENDING
    attempts: int = 0
    next_attempt_at: datetime | None = None
    lease_until: datetime | None = None
    token: str | None = None
    last_status_code: int | None = None
    last_error: str | None = None
    duration_ms: int | None = None
    last_attempt_at: datetime | None = None
    lost_tries: int = 0  # in a row: claimed, and never recorded

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        check_id(self.event_id, "eventId")
        parse_reference(self.reference)
        check_integer(self.sequence, "sequence", 1, SEQUENCE_MAX)
        check_member(self.environment, "environment", Environment)
        check_member(self.status, "status", DeliveryStatus)
        if (self.endpoint_id is None) is (self.url is None):
            raise invalid("url", "A delivery goes to an endpoint or to the payment's own address.")
        if (self.status is DeliveryStatus.PENDING) is not (self.next_attempt_at is not None):
            raise invalid("nextAttemptAt", "A delivery is scheduled while it is pending, and only then.")
        check_integer(self.attempts, "attempts", 0, SEQUENCE_MAX)
        check_integer(self.lost_tries, "lostTries", 0, SEQUENCE_MAX)
        check_instant(self.created_at, "createdAt")

    @property
    def is_poison(self) -> bool:
        """Whether it may kill the workers that send it."""
        return self.lost_tries >= ALONE_FROM

    @classmethod
    def of(cls, event: Event, id: str, endpoint_id: str | None, url: str | None) -> "Delivery":
        """A delivery due at once; raises VALIDATION_ERROR unless it has exactly one address.

        The partition is the endpoint; all webhookUrls of a business and environment share one, because a
        partition per host would let a business that names many dead hosts hold every worker's slots.
        """
        partition = endpoint_id or f"{event.business_id}:{event.environment.value}"
        return cls(
            id=id,
            event_id=event.id,
            event_type=event.type,
            reference=event.reference,
            sequence=event.sequence,
            business_id=event.business_id,
            environment=event.environment,
            endpoint_id=endpoint_id,
            url=url,
            partition=partition,
            created_at=event.created_at,
            next_attempt_at=event.created_at,
        )


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


def delay_after(
    environment: Environment, attempts: int, chance: float, retry_after: timedelta | None = None
) -> timedelta | None:
    """How long to wait after `attempts` failures, or None when they are used up.

    `chance` in [0, 1) spreads the delay by JITTER either way. A receiver's Retry-After counts within one and two times
    the planned delay: it may slow us, not stop us.
    """
    schedule = SCHEDULE[environment]
    if attempts >= len(schedule):
        return None
    planned = schedule[attempts]
    if retry_after is not None:
        return min(max(retry_after, planned), planned * 2)
    return planned * (1 + JITTER * (2 * chance - 1))


def attempts_before_redelivery(delivery: Delivery, now: datetime) -> int:
    """The attempts counted of a delivery that is made due at `now`. One sent before its time takes no place in the
    schedule, or a merchant who asks often would be given up the sooner; one that was lost keeps its number."""
    is_early = delivery.next_attempt_at is not None and delivery.next_attempt_at > now
    return max(0, delivery.attempts - (is_early and not delivery.lost_tries))


def due_after_loss(delivery: Delivery, now: datetime) -> datetime | None:
    """When a delivery is due whose last `lost_tries` attempts were lost with their workers; None when it is given up.

    A lost attempt neither uses up the schedule nor counts against the endpoint. The first is repeated at once; from
    ALONE_FROM on the schedule's delays apply. The last attempt is at the schedule's last instant, counted from the
    event: the delivery ends only when one sent alone is lost at or after it.
    """
    schedule = SCHEDULE[delivery.environment]
    if not delivery.is_poison:
        return now
    last = delivery.created_at + sum(schedule, timedelta(0))
    if now >= last:
        return None if delivery.lost_tries > ALONE_FROM else now
    return min(now + schedule[min(delivery.lost_tries, len(schedule) - 1)], last)
