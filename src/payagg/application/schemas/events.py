"""The bodies that merchants receive; stored once as bytes and sent unchanged on every attempt."""

from datetime import datetime

import msgspec
from msgspec import UNSET

from payagg.application.schemas.payments import Message, PaymentDetail
from payagg.domain.adjustment import OTHER_CURRENCY, amount_of
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.payment import Payment
from payagg.domain.values import Environment


class Notice(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """The part that an anomaly's event adds. `amount` is kobo, null when the provider named none, or another
    currency.

    A refund: its id at the provider. A dispute: its id, its state (`opened`, `won`, `lost`, `accepted`) and its
    deadline. `payment.attention`: the reason, and the kobo expected and received.
    """

    anomaly_id: str
    kind: str
    amount: int | None
    refund_id: str | None = None
    dispute_id: str | None = None
    state: str | None = None
    due_at: str | None = None
    reason: str | None = None
    expected: int | None = None
    received: int | None = None

    @classmethod
    def of(cls, anomaly: Anomaly, payment: Payment) -> "Notice":
        details = anomaly.details
        named = {"refund_id": "refundId", "dispute_id": "disputeId"}
        same = ("state", "reason", "expected", "received")
        more = {field: details.get(named.get(field, field)) or None for field in (*named, *same)}
        if anomaly.kind is AnomalyKind.DISPUTE:
            # The disputed amount, all of it when no part is named; `amount` is the part that counts as lost.
            disputed = amount_of({"amounts": details.get("amounts")}, payment.amount)
            amount: int | None = payment.amount if disputed is None else disputed
        else:
            amount = amount_of(details, payment.amount) if details.get("reason") != OTHER_CURRENCY else None
        return cls(anomaly.id, anomaly.kind.value, amount, due_at=anomaly.due_at, **more)


class _EventHead(msgspec.Struct, rename="camel", frozen=True):
    id: str
    type: str
    created_at: datetime
    environment: Environment
    sequence: int


class EventBody(_EventHead, frozen=True):
    """The body that merchants receive; stored once as bytes and sent unchanged on every attempt."""

    data: PaymentDetail
    notice: Notice | msgspec.UnsetType = UNSET


class TestBody(_EventHead, frozen=True):
    """The body of a test event; `sequence` is 0 because it belongs to no payment."""

    __test__ = False  # not a test class, whatever its name says to pytest

    data: Message
