"""Answers of lists and summaries of payments, and of what became of their money."""

from datetime import date, datetime
from typing import Annotated, cast

from msgspec import Meta, Raw, Struct, field

from payagg.application.schemas.payments import PaymentAdjustment, PaymentDetail, Reference
from payagg.application.schemas.views import AnomalyId, view_of
from payagg.domain.adjustment import Adjustment, AdjustmentKind
from payagg.domain.payment import Status
from payagg.domain.payment_search import CURSOR_LENGTH, PAGE_MAX, SUMMARY_PAYMENTS

# Kobo that a summary can add up, past 64 bits.
SUM_MAX = SUMMARY_PAYMENTS * (2**63 - 1)
Day = Annotated[date, Meta(examples=["2025-01-31"])]


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


Cursor = Annotated[
    str,
    Meta(
        min_length=CURSOR_LENGTH,
        max_length=CURSOR_LENGTH,
        pattern="^[A-Za-z0-9_-]+$",
        examples=["MDYyY2ZmNDgzNTUwMDBQQVktMjAyNTAxMzEtN0syTTlY"],
    ),
]
Count = Annotated[int, Meta(ge=0)]
KoboSum = Annotated[
    int, Meta(ge=0, description="Integer kobo.", examples=[450000], extra_json_schema={"maximum": SUM_MAX})
]


class PaymentPage(Struct, rename="camel", frozen=True):
    """Payments, newest first. Pass `nextCursor` as `after` while `hasMore`: a page has fewer than `limit` when metadata
    is large, and fewer or none when a status is rare among the payments that it looked at."""

    payments: Annotated[list[PaymentDetail], Meta(max_length=PAGE_MAX)]
    next_cursor: Cursor | None
    has_more: bool


class AdminPayment(Struct, rename="camel", frozen=True):
    """A payment as its merchant sees it, and its business."""

    business_id: str
    business_name: str
    payment: PaymentDetail


class AdminPaymentPage(Struct, rename="camel", frozen=True):
    """As PaymentPage, over all businesses."""

    payments: Annotated[list[AdminPayment], Meta(max_length=PAGE_MAX)]
    next_cursor: Cursor | None
    has_more: bool


class StatusTotal(Struct, rename="camel", frozen=True):
    """The payments of one status, and the sum of their amounts. `fee` and `netAmount` are sums over the `withFee`
    payments whose fee is known, null without any."""

    status: Status
    count: Count
    amount: KoboSum
    fee: KoboSum | None
    net_amount: KoboSum | None
    with_fee: Count


class PaymentDay(Struct, rename="camel", frozen=True):
    """The payments created on one UTC day, by their present status; a status without any is omitted."""

    date: Day
    totals: list[StatusTotal]


class PaymentSummary(Struct, rename="camel", frozen=True):
    """The days that have payments, and those that have adjustments, each oldest first."""

    since: datetime = field(name="from")
    until: datetime = field(name="to")
    currency: str
    days: list[PaymentDay]
    adjustments: list[AdjustmentDay]


def exact(value: int) -> int:
    # A sum may have more digits than the encoder's 64 bits; JSON has no limit.
    return cast(int, Raw(str(value).encode()))
