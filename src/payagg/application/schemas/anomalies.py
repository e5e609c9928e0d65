"""Requests and answers of anomalies, for administrators."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, convert

from payagg.application.schemas.views import id_form, view_of
from payagg.domain.anomaly import (
    ASSIGNEE_MAX,
    CLOSE_REASON_MAX,
    NOTE_MAX,
    Anomaly,
    AnomalyKind,
    AnomalyStatus,
    Severity,
)

PAGE_DEFAULT = 50
PAGE_MAX = 100
NOT_BLANK = r"\S"
AnomalyId = Annotated[str, id_form("anm", ["anm_0194bb8f3c0000000000000000000001"])]


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
