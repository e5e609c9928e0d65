"""The bodies that merchants receive; stored once as bytes and sent unchanged on every try."""

from datetime import datetime

import msgspec
from msgspec import UNSET

from payagg.application.schemas.payments import Message, PaymentDetail
from payagg.domain.values import Environment


class Notice(msgspec.Struct, rename="camel", frozen=True):
    """What an event that tells of an anomaly adds; `amount` is the provider's figure in kobo, where it named one."""

    anomaly_id: str
    kind: str
    amount: int | None


class EventBody(msgspec.Struct, rename="camel", frozen=True):
    """The body merchants receive; stored once as bytes and sent unchanged on every try."""

    id: str
    type: str
    created_at: datetime
    environment: Environment
    sequence: int
    data: PaymentDetail
    notice: Notice | msgspec.UnsetType = UNSET


class TestBody(msgspec.Struct, rename="camel", frozen=True):
    """The body of a test event; `sequence` is 0 because it belongs to no payment."""

    __test__ = False  # not a test class, whatever its name says to pytest

    id: str
    type: str
    created_at: datetime
    environment: Environment
    sequence: int
    data: Message
