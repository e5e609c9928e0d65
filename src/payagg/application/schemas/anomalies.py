"""What administrators send and see of anomalies."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from payagg.domain.anomaly import CLOSE_REASON_MAX, Anomaly, AnomalyKind, AnomalyStatus

PAGE_DEFAULT = 50
PAGE_MAX = 100
AnomalyId = Annotated[
    str,
    Meta(
        min_length=36,
        max_length=36,
        pattern="^anm_[0-9a-f]{32}$",
        examples=["anm_0194bb8f3c0000000000000000000001"],
    ),
]


class CloseAnomaly(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`reason` says what was done about it."""

    reason: Annotated[str, Meta(min_length=1, max_length=CLOSE_REASON_MAX, examples=["Refunded at the provider."])]


class AnomalyView(Struct, rename="camel", frozen=True):
    """A fact about money that moved no payment. `details` are the provider's figures and words as they came."""

    id: str
    reference: str | None
    kind: AnomalyKind
    status: AnomalyStatus
    source: str
    details: dict[str, Any]
    created_at: datetime
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    closed_by: str | None
    closed_at: datetime | None
    close_reason: str | None

    @classmethod
    def of(cls, anomaly: Anomaly) -> "AnomalyView":
        return cls(
            id=anomaly.id,
            reference=anomaly.reference,
            kind=anomaly.kind,
            status=anomaly.status,
            source=anomaly.source,
            details=dict(anomaly.details),
            created_at=anomaly.at,
            acknowledged_by=anomaly.acknowledged_by,
            acknowledged_at=anomaly.acknowledged_at,
            closed_by=anomaly.closed_by,
            closed_at=anomaly.closed_at,
            close_reason=anomaly.close_reason,
        )


class AnomalyPage(Struct, rename="camel", frozen=True):
    """Newest first. Pass `nextCursor` as `after` to go on."""

    anomalies: list[AnomalyView]
    next_cursor: AnomalyId | None
    has_more: bool
