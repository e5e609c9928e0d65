"""Requests and answers of resolutions, for administrators."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.schemas.anomalies import NOT_BLANK
from payagg.application.schemas.payments import Reference
from payagg.application.schemas.views import view_of
from payagg.domain.payment import Status
from payagg.domain.resolution import EVIDENCE_MAX, OUTCOME, RESOLUTION_REASON_MAX, Resolution


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
