"""Anomalies: facts about money that must not move a payment and must not be lost, and how people close them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from payagg.domain.checks import check_id, check_instant, check_member, check_text, with_changes
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.machine import Machine
from payagg.domain.payment import ACTOR_MAX
from payagg.domain.values import Environment, parse_reference

CLOSE_REASON_MAX = 500  # characters
NOTE_MAX = 2_000  # characters
NOTES_MAX = 50
ASSIGNEE_MAX = 255  # characters, as of a token's `sub`
RECONCILIATION = "reconciliation"  # the source of what a provider's lists or statements told


class AnomalyKind(Enum):
    """Facts that must not move a payment and must not be lost."""

    LATE_SUCCESS = "LATE_SUCCESS"
    SECOND_CHARGE = "SECOND_CHARGE"  # paid twice, by two charges
    LATE_FAILURE = "LATE_FAILURE"
    LATE_REVERSAL = "LATE_REVERSAL"
    MISMATCH = "MISMATCH"
    WRONG_PROVIDER = "WRONG_PROVIDER"
    WRONG_ENVIRONMENT = "WRONG_ENVIRONMENT"
    UNKNOWN_REFERENCE = "UNKNOWN_REFERENCE"
    PARTIAL_REFUND = "PARTIAL_REFUND"
    DISPUTE = "DISPUTE"
    NO_EVIDENCE = "NO_EVIDENCE"
    UNKNOWN_STATUS = "UNKNOWN_STATUS"  # a status of the provider's outside its status map, about a final payment


class Severity(Enum):
    """What a kind means for the money, the worst first."""

    MONEY_GONE = "MONEY_GONE"  # the provider takes back money reported as paid
    MONEY_TO_GIVE_BACK = "MONEY_TO_GIVE_BACK"  # a payer may have paid without receiving anything
    INFORMATION = "INFORMATION"


_SEVERITY_OF = {
    AnomalyKind.LATE_REVERSAL: Severity.MONEY_GONE,
    AnomalyKind.PARTIAL_REFUND: Severity.MONEY_GONE,
    AnomalyKind.DISPUTE: Severity.MONEY_GONE,
    AnomalyKind.LATE_SUCCESS: Severity.MONEY_TO_GIVE_BACK,
    AnomalyKind.SECOND_CHARGE: Severity.MONEY_TO_GIVE_BACK,
    AnomalyKind.MISMATCH: Severity.MONEY_TO_GIVE_BACK,
    AnomalyKind.WRONG_PROVIDER: Severity.MONEY_TO_GIVE_BACK,
    AnomalyKind.WRONG_ENVIRONMENT: Severity.MONEY_TO_GIVE_BACK,
    AnomalyKind.UNKNOWN_REFERENCE: Severity.MONEY_TO_GIVE_BACK,
    AnomalyKind.LATE_FAILURE: Severity.INFORMATION,
    AnomalyKind.NO_EVIDENCE: Severity.INFORMATION,
    AnomalyKind.UNKNOWN_STATUS: Severity.INFORMATION,
}


def severity_of(kind: AnomalyKind) -> Severity:
    return _SEVERITY_OF[kind]


class AnomalyStatus(Enum):
    OPEN = "OPEN"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    CLOSED = "CLOSED"


class AnomalyTrigger(Enum):
    ACKNOWLEDGE = "ACKNOWLEDGE"
    CLOSE = "CLOSE"


ANOMALY = Machine(
    name="anomaly",
    states=AnomalyStatus,
    triggers=AnomalyTrigger,
    initial=AnomalyStatus.OPEN,
    moves={
        (AnomalyStatus.OPEN, AnomalyTrigger.ACKNOWLEDGE): AnomalyStatus.ACKNOWLEDGED,
        (AnomalyStatus.OPEN, AnomalyTrigger.CLOSE): AnomalyStatus.CLOSED,
        (AnomalyStatus.ACKNOWLEDGED, AnomalyTrigger.CLOSE): AnomalyStatus.CLOSED,
    },
    refusals={
        AnomalyTrigger.ACKNOWLEDGE: ErrorCode.ANOMALY_NOT_OPEN,
        AnomalyTrigger.CLOSE: ErrorCode.ANOMALY_ALREADY_CLOSED,
    },
)


@dataclass(frozen=True)
class Anomaly:
    """Kept for people: listed by `payagg anomalies`, shown by `explain`. `details` are the facts as received.

    Raises INVALID_REFERENCE or VALIDATION_ERROR for what no anomaly can be, with the field's JSON name.
    """

    id: str
    reference: str | None
    kind: AnomalyKind
    source: str  # `verify`, `reconciler`, `process`, or `event:` with the provider
    details: Mapping[str, Any]
    at: datetime
    event_sequence: int | None = None  # of the event that notified the merchant, if any
    status: AnomalyStatus = ANOMALY.initial
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None
    closed_by: str | None = None
    closed_at: datetime | None = None
    close_reason: str | None = None
    business_id: str | None = None  # the payment's business; None without a payment
    environment: Environment | None = None
    assignee: str | None = None
    notes: tuple[Mapping[str, Any], ...] = ()  # what people wrote, oldest first: `at` (ISO 8601), `by`, `text`

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        if self.reference is not None:
            parse_reference(self.reference)
        check_member(self.kind, "kind", AnomalyKind)
        check_text(self.source, "source", ACTOR_MAX, 1)
        check_instant(self.at, "at")
        check_member(self.status, "status", AnomalyStatus)
        if (self.status is AnomalyStatus.CLOSED) is not (self.closed_at is not None):
            raise invalid("closedAt", "An anomaly has it when it is closed, and only then.")

    @property
    def is_from_asking(self) -> bool:
        return not self.source.startswith("event:")

    @property
    def severity(self) -> Severity:
        return severity_of(self.kind)

    @property
    def due_at(self) -> str | None:
        """A dispute's deadline as answers write an instant; None without one. `details` keep it as it came in, since
        a fact that is told again is known by them."""
        due: str = self.details.get("dueAt") or ""
        return due.replace("+00:00", "Z") or None

    def age(self, now: datetime) -> timedelta:
        """How long it has waited, or had when it was closed."""
        return max(timedelta(0), (self.closed_at or now) - self.at)

    def is_same_fact(self, kind: AnomalyKind, details: Mapping[str, Any]) -> bool:
        """Whether it is of this kind and has these details. Of two mismatches one may lack its transaction's id, or the
        figures that prove a payment: an event calls its money an underpayment, an answer gives what was received alone.
        """
        mine, others = dict(self.details), dict(details)
        if kind is AnomalyKind.MISMATCH:
            may_differ: dict[str, Any] = {"amounts": None, "reason": None}
            if ("providerId" in mine) is not ("providerId" in others):
                may_differ["providerId"] = None
            mine, others = mine | may_differ, others | may_differ
        return self.kind is kind and mine == others

    def acknowledge(self, by: str, now: datetime) -> "Anomaly":
        """Marks it as seen; raises ANOMALY_NOT_OPEN when it is acknowledged or closed."""
        status = ANOMALY.next(self.status, AnomalyTrigger.ACKNOWLEDGE)
        return with_changes(self, status=status, acknowledged_by=by, acknowledged_at=now)

    def close(self, by: str, reason: str, now: datetime) -> "Anomaly":
        """Closes it with what was done; raises ANOMALY_ALREADY_CLOSED, or VALIDATION_ERROR on `reason`."""
        if not 1 <= len(reason.strip()) <= len(reason) <= CLOSE_REASON_MAX:
            raise invalid("reason", f"Say what was done, in at most {CLOSE_REASON_MAX} characters.")
        status = ANOMALY.next(self.status, AnomalyTrigger.CLOSE)
        return with_changes(self, status=status, closed_by=by, closed_at=now, close_reason=reason)

    def assign(self, assignee: str | None) -> "Anomaly":
        """Sets who works on it, None for nobody; raises ANOMALY_ALREADY_CLOSED, or VALIDATION_ERROR on `assignee`."""
        if assignee is not None:
            check_text(assignee, "assignee", ASSIGNEE_MAX, 1)
            if not assignee.strip() or not assignee.isprintable():
                raise invalid("assignee", "Must be printable and not blank.")
        self._ensure_unclosed()
        return with_changes(self, assignee=assignee)

    def note(self, text: str, by: str, now: datetime) -> "Anomaly":
        """Adds a note; raises ANOMALY_ALREADY_CLOSED, NOTE_LIMIT_REACHED, or VALIDATION_ERROR on `text`."""
        check_text(text, "text", NOTE_MAX, 1)
        if not text.strip():
            raise invalid("text", "Must not be blank.")
        self._ensure_unclosed()
        if len(self.notes) >= NOTES_MAX:
            raise Refusal(ErrorCode.NOTE_LIMIT_REACHED)
        return with_changes(self, notes=(*self.notes, {"at": now.isoformat(), "by": by, "text": text}))

    def _ensure_unclosed(self) -> None:
        if self.status is AnomalyStatus.CLOSED:
            raise Refusal(ErrorCode.ANOMALY_ALREADY_CLOSED)
