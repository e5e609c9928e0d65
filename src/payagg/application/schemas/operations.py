"""Requests and answers for administrators: anomalies, payments ended by hand, reconciliations."""

from datetime import date, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, convert

from payagg.application.schemas.payment_search import KoboSum, exact
from payagg.application.schemas.payments import Reference
from payagg.application.schemas.views import AnomalyId, id_form, view_of
from payagg.domain.anomaly import (
    ASSIGNEE_MAX,
    CLOSE_REASON_MAX,
    NOTE_MAX,
    Anomaly,
    AnomalyKind,
    AnomalyStatus,
    Severity,
)
from payagg.domain.payment import Status
from payagg.domain.reconciliation import ReconciliationFinding, ReconciliationRun
from payagg.domain.resolution import EVIDENCE_MAX, OUTCOME, RESOLUTION_REASON_MAX, Resolution
from payagg.domain.values import Environment

NOT_BLANK = r"\S"


class CloseAnomaly(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`reason`: what was done about it."""

    reason: Annotated[str, Meta(min_length=1, max_length=CLOSE_REASON_MAX, examples=["Refunded at the provider."])]


class AssignAnomaly(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`assignee`: who works on it; null: nobody."""

    assignee: Annotated[str, Meta(min_length=1, max_length=ASSIGNEE_MAX, pattern=NOT_BLANK, examples=["ada"])] | None


class AddNote(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`text`: a finding or an action."""

    text: Annotated[
        str, Meta(min_length=1, max_length=NOTE_MAX, pattern=NOT_BLANK, examples=["Asked the provider, case 4711."])
    ]


class AnomalyNote(Struct, rename="camel", frozen=True):
    at: datetime
    by: str
    text: str


class AnomalyView(Struct, rename="camel", frozen=True):
    """A fact about money that moved no payment. `details` are the provider's figures and texts as received; `dueAt` is
    a dispute's deadline.

    `ageSeconds`: how long it has waited, or had when it was closed. `notes`: oldest first.
    """

    id: str
    reference: str | None
    kind: AnomalyKind
    severity: Severity
    status: AnomalyStatus
    source: str
    details: dict[str, Any]
    due_at: str | None
    created_at: datetime
    age_seconds: int
    assignee: str | None
    notes: list[AnomalyNote]
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    closed_by: str | None
    closed_at: datetime | None
    close_reason: str | None

    @classmethod
    def of(cls, anomaly: Anomaly, now: datetime) -> "AnomalyView":
        return view_of(
            cls,
            anomaly,
            details=dict(anomaly.details),
            created_at=anomaly.at,
            age_seconds=int(anomaly.age(now).total_seconds()),
            notes=convert(anomaly.notes, list[AnomalyNote]),
        )


class AnomalyPage(Struct, rename="camel", frozen=True):
    """Newest first. Pass `nextCursor` as `after` to go on."""

    anomalies: list[AnomalyView]
    next_cursor: AnomalyId | None
    has_more: bool


class ResolvePayment(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`outcome` is always FAILED; `evidence` shows that nothing was paid, or where the money went."""

    # The domain refuses any other value, naming this one.
    outcome: Annotated[str, Meta(extra_json_schema={"enum": [OUTCOME.value]}, examples=[OUTCOME.value])]
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=RESOLUTION_REASON_MAX,
            pattern=NOT_BLANK,
            examples=["The provider has closed the account."],
        ),
    ]
    evidence: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=EVIDENCE_MAX,
            pattern=NOT_BLANK,
            examples=["The provider writes in its case 4711 that nothing was paid."],
        ),
    ]


class ResolutionView(Struct, rename="camel", frozen=True):
    """A request to end a payment, to be confirmed by another administrator before `confirmUntil`."""

    id: str
    reference: Reference
    outcome: Status
    reason: str
    evidence: str
    requested_by: str
    requested_at: datetime
    confirm_until: datetime
    confirmed_by: str | None
    confirmed_at: datetime | None

    @classmethod
    def of(cls, resolution: Resolution) -> "ResolutionView":
        return view_of(cls, resolution, outcome=OUTCOME)


FINDING_COLUMNS = ("bucket", "reference", "providerReference", "kind", "lineId", "ourKobo", "theirKobo", "effect")
ReconciliationId = Annotated[str, id_form("rec", ["rec_0194bb8f3c0000000000000000000001"])]


class BucketView(Struct, rename="camel", frozen=True):
    """`ours` and `theirs` are kobo."""

    payments: int
    ours: KoboSum
    lines: int
    theirs: KoboSum


class ReconciliationView(Struct, rename="camel", frozen=True):
    """A gateway's days, both included. `source` is `list`, or `file` and the file's SHA-256. Without `endedAt` it is
    running, or was killed and can be repeated. `buckets` has the non-empty ones."""

    id: ReconciliationId
    gateway: str
    environment: Environment
    first_day: date
    last_day: date
    source: str
    started_by: str
    started_at: datetime
    ended_at: datetime | None
    buckets: dict[str, BucketView]

    @classmethod
    def of(cls, run: ReconciliationRun) -> "ReconciliationView":
        buckets = {
            bucket: BucketView(**{name: exact(value) for name, value in total.items()})
            for bucket, total in sorted(run.totals.items())
        }
        return view_of(cls, run, buckets=buckets)


class ReconciliationPage(Struct, rename="camel", frozen=True):
    """Newest first. Pass `nextCursor` as `after` to go on."""

    reconciliations: list[ReconciliationView]
    next_cursor: ReconciliationId | None
    has_more: bool


def cells_of(one: ReconciliationFinding) -> list[Any]:
    """A finding's values in the order of FINDING_COLUMNS."""
    kind = one.line_kind.value if one.line_kind is not None else None
    told = (one.bucket.value, one.reference, one.provider_reference, kind, one.line_id)
    return [*told, one.ours, one.theirs, one.effect]
