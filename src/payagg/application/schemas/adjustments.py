"""Merchants' view of a payment's adjustments."""

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.schemas.anomalies import AnomalyId
from payagg.application.schemas.payments import PaymentAdjustment, Reference
from payagg.application.schemas.views import view_of
from payagg.domain.adjustment import Adjustment, AdjustmentKind
from payagg.domain.payment_search import SUMMARY_PAYMENTS

# Kobo that a summary can add up, past 64 bits.
SUM_MAX = SUMMARY_PAYMENTS * (2**63 - 1)
Day = Annotated[date, Meta(examples=["2025-01-31"])]
PAGE_DEFAULT = 20
PAGE_MAX = 100


class AdjustmentView(PaymentAdjustment, rename="camel", frozen=True, omit_defaults=True, kw_only=True):
    """An adjustment and its payment; `needsAttention` while somebody must act on it."""

    id: AnomalyId
    reference: Reference
    needs_attention: bool

    @classmethod
    def of(cls, adjustment: Adjustment) -> "AdjustmentView":
        return view_of(cls, adjustment)


class AdjustmentPage(Struct, rename="camel", frozen=True):
    """Newest first. Pass `nextCursor` as `after` while `hasMore`."""

    adjustments: Annotated[list[AdjustmentView], Meta(max_length=PAGE_MAX)]
    next_cursor: AnomalyId | None
    has_more: bool


class KindTotal(Struct, rename="camel", frozen=True):
    """The adjustments of one kind: their number, the sum of the known amounts, and `effect` on the payments' total:
    negative for refunds and lost disputes, nothing for these and late successes of the charge that was REVERSED."""

    kind: AdjustmentKind
    count: Annotated[int, Meta(ge=0)]
    amount: Annotated[
        int, Meta(ge=0, description="Integer kobo.", examples=[50000], extra_json_schema={"maximum": SUM_MAX})
    ]
    effect: Annotated[
        int,
        Meta(
            description="Integer kobo.",
            examples=[-50000],
            extra_json_schema={"minimum": -SUM_MAX, "maximum": SUM_MAX},
        ),
    ]


class AdjustmentDay(Struct, rename="camel", frozen=True):
    """The adjustments of one UTC day, whatever the day of their payments; a kind without any is omitted."""

    date: Day
    totals: list[KindTotal]
