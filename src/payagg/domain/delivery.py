"""An event for a merchant, its deliveries, and the schedule of their attempts."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from payagg.domain.checks import (
    check_bytes,
    check_id,
    check_instant,
    check_integer,
    check_member,
    check_text,
    restore,
)
from payagg.domain.errors import invalid
from payagg.domain.payment import SEQUENCE_MAX, Payment
from payagg.domain.values import Environment, parse_reference

EVENT_NAME_MAX = 50
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


class DeliveryStatus(Enum):
    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


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
