"""Searching payments: what is asked for, the place where a page ended, and totals."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from payagg.domain.errors import invalid
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment, parse_instant

PAGE_DEFAULT = 20
PAGE_MAX = 100
# What one summary reads at most.
SUMMARY_MAX = timedelta(days=31)
SUMMARY_PAYMENTS = 2_000_000
CURSOR_LENGTH = 44

# Stand where no time is asked for: every range has a lower and an upper end.
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_PLACE = re.compile(rb"([0-9a-f]{14})([A-Z]{3}-[0-9]{8}-[A-Z0-9]{6})")


@dataclass(frozen=True)
class PaymentFilter:
    """Which payments: those that meet everything that is not None. `since` is inclusive, `until` is not, and both are
    about when a payment was created; `email` is compared without letter case."""

    business_id: str | None = None
    environment: Environment | None = None
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None
    reference: str | None = None
    idempotency_key: str | None = None
    email: str | None = None

    def matches(self, payment: Payment, now: datetime) -> bool:
        """Whether a reader who asks at `now` gets this payment: expiry counts from its instant."""
        seen = payment.as_of(now)
        wanted = (
            (self.business_id, seen.business_id),
            (self.environment, seen.environment),
            (self.status, seen.status),
            (self.reference, seen.reference),
            (self.idempotency_key, seen.idempotency_key),
            (_fold_case(self.email), _fold_case(seen.customer_email)),
        )
        if any(value is not None and value != found for value, found in wanted):
            return False
        return (self.since is None or seen.created_at >= self.since) and (
            self.until is None or seen.created_at < self.until
        )


def _fold_case(email: str | None) -> str | None:
    return email.lower() if email is not None else None


@dataclass(frozen=True, order=True)
class PaymentCursor:
    """A place in the order of lists: by the instant of creation, then by reference."""

    created_at: datetime
    reference: str

    @classmethod
    def of(cls, payment: Payment) -> "PaymentCursor":
        return cls(payment.created_at, payment.reference)

    @classmethod
    def parse(cls, text: str) -> "PaymentCursor":
        """What `text` wrote; raises VALIDATION_ERROR on `after`."""
        try:
            place = _PLACE.fullmatch(urlsafe_b64decode(text.encode("ascii")))
            if place is not None:
                cursor = cls(_EPOCH + int(place[1], 16) * _TICK, place[2].decode())
                if cursor.text == text:
                    return cursor
        except (ValueError, OverflowError):
            pass
        raise invalid("after", "Must be the nextCursor of an earlier answer.")

    @property
    def text(self) -> str:
        """Opaque to callers: 44 characters of URL-safe base64."""
        return urlsafe_b64encode(f"{(self.created_at - _EPOCH) // _TICK:014x}{self.reference}".encode()).decode()


@dataclass(frozen=True)
class PaymentTotal:
    """How many payments of one UTC day are in one status, and their amounts' sum in kobo, of any size. `fee` and
    `net_amount` are the sums over those `with_fee` whose fee is known, None where there is none."""

    day: date
    status: Status
    count: int
    amount: int
    fee: int | None = None
    net_amount: int | None = None
    with_fee: int = 0


def parse_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """The parameters `from` and `to` as instants; raises VALIDATION_ERROR naming the wrong one."""
    start = parse_instant(since, "from") if since is not None else None
    end = parse_instant(until, "to") if until is not None else None
    if start is not None and end is not None and end <= start:
        raise invalid("to", "Must be later than `from`.")
    return start, end
