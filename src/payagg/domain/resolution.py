"""Ends a payment that no provider will end: one administrator requests FAILED, another confirms. SUCCESS is never set
by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.domain.anomaly import Anomaly
from payagg.domain.checks import check_id, check_instant, check_text, with_changes
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.payment import ACTOR_MAX, Payment, Status
from payagg.domain.values import parse_reference

OUTCOME = Status.FAILED  # the only one: SUCCESS and REVERSED are a provider's to say
RESOLVED = "RESOLVED"  # the failure reason of a payment that two administrators ended
CONFIRM_WITHIN = timedelta(hours=24)
RESOLUTION_REASON_MAX = 500  # characters
EVIDENCE_MAX = 2_000  # characters


@dataclass(frozen=True)
class Resolution:
    """A request to end a payment as FAILED, and its confirmation by another. `evidence` is what shows that nothing was
    paid, or that what was paid goes back. `requested_by` and `confirmed_by` are names of actors, as `admin:ada`.

    Raises INVALID_REFERENCE or VALIDATION_ERROR for what no request can be, with the field's JSON name.
    """

    id: str
    reference: str
    reason: str
    evidence: str
    requested_by: str
    requested_at: datetime
    confirmed_by: str | None = None
    confirmed_at: datetime | None = None

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        parse_reference(self.reference)
        for value, field, most in (
            (self.reason, "reason", RESOLUTION_REASON_MAX),
            (self.evidence, "evidence", EVIDENCE_MAX),
        ):
            check_text(value, field, most, 1)
            if not value.strip():
                raise invalid(field, "Must not be blank.")
        check_text(self.requested_by, "requestedBy", ACTOR_MAX, 1)
        check_instant(self.requested_at, "requestedAt")

    @property
    def confirm_until(self) -> datetime:
        return self.requested_at + CONFIRM_WITHIN

    @property
    def actor(self) -> str:
        """The transition's actor: who requested and who confirmed."""
        return f"{self.requested_by}, confirmed by {self.confirmed_by}"

    def is_waiting(self, now: datetime) -> bool:
        return self.confirmed_at is None and now < self.confirm_until


def check_outcome(outcome: str) -> None:
    """Raises VALIDATION_ERROR on `outcome` for anything but FAILED."""
    if outcome != OUTCOME.value:
        raise invalid("outcome", f"Must be {OUTCOME.value}: no other end is made by hand.")


def is_resolvable(payment: Payment, known: Sequence[Anomaly], now: datetime) -> bool:
    """Whether people may end it: it is past its window, not final, and has an anomaly of its own. A closed one counts:
    it never opens again, and the payment would stay open for ever."""
    seen = payment.as_of(now)
    is_over = not seen.is_final and now >= seen.expires_at
    return is_over and any(one.reference == payment.reference for one in known)


def ask(
    payment: Payment,
    known: Sequence[Anomaly],
    latest: Resolution | None,
    *,
    id: str,
    reason: str,
    evidence: str,
    by: str,
    now: datetime,
) -> Resolution:
    """A new request; `known` are the payment's anomalies, `latest` its last request. Raises as Resolution does, or
    PAYMENT_ALREADY_FINAL, RESOLUTION_NOT_ALLOWED or RESOLUTION_ALREADY_REQUESTED."""
    made = Resolution(id, payment.reference, reason, evidence, by, now)
    _ensure_resolvable(payment, known, now)
    if latest is not None and latest.is_waiting(now):
        raise Refusal(ErrorCode.RESOLUTION_ALREADY_REQUESTED)
    return made


def confirm(
    payment: Payment, known: Sequence[Anomaly], latest: Resolution | None, *, by: str, now: datetime
) -> Resolution:
    """The request as another administrator confirms it. Raises PAYMENT_ALREADY_FINAL, RESOLUTION_NOT_ALLOWED,
    RESOLUTION_NOT_REQUESTED or SECOND_ADMINISTRATOR_REQUIRED."""
    _ensure_resolvable(payment, known, now)
    if latest is None or not latest.is_waiting(now):
        raise Refusal(ErrorCode.RESOLUTION_NOT_REQUESTED)
    if latest.requested_by == by:
        raise Refusal(ErrorCode.SECOND_ADMINISTRATOR_REQUIRED)
    return with_changes(latest, confirmed_by=by, confirmed_at=now)


def _ensure_resolvable(payment: Payment, known: Sequence[Anomaly], now: datetime) -> None:
    payment.as_of(now).ensure_open()
    if not is_resolvable(payment, known, now):
        raise Refusal(ErrorCode.RESOLUTION_NOT_ALLOWED)
