"""Requests and answers of webhooks, and the bodies that merchants receive: stored once as bytes and sent unchanged."""

from datetime import datetime
from typing import Annotated, Self

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from payagg.application.schemas.payments import Message, PaymentDetail
from payagg.application.schemas.views import id_form, view_of
from payagg.domain.adjustment import OTHER_CURRENCY, amount_of, figure_of
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.delivery import EVENT_NAME_MAX, Delivery, DeliveryStatus
from payagg.domain.payment import Payment
from payagg.domain.values import URL_MAX, Environment
from payagg.domain.webhook import DESCRIPTION_MAX, EVENT_NAMES_MAX, EventType, WebhookEndpoint


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
            disputed = figure_of(details, payment.amount)
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


EndpointUrl = Annotated[
    str, Meta(max_length=URL_MAX, description="URI; HTTPS for LIVE.", examples=["https://shop.example/hooks"])
]
Description = Annotated[str, Meta(max_length=DESCRIPTION_MAX, examples=["Order service"])]
EventNames = Annotated[
    list[
        Annotated[
            str,
            Meta(
                max_length=EVENT_NAME_MAX,
                examples=["payment.success"],
                extra_json_schema={"enum": [kind.value for kind in EventType]},
            ),
        ]
    ],
    Meta(max_length=EVENT_NAMES_MAX, description="Event types to receive; empty means all."),
]
EventId = Annotated[str, id_form("evt")]


class CreateWebhook(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    url: EndpointUrl
    environment: Environment
    description: Description | None = None
    events: EventNames | None = None


class ChangeWebhook(Struct, rename="camel", kw_only=True, frozen=True):
    """An absent field keeps its value; `description: null` clears it, any other null means absent."""

    url: EndpointUrl | None = None
    description: Description | UnsetType | None = UNSET
    events: EventNames | None = None
    is_active: bool | None = None


class DeliverySummary(Struct, rename="camel", frozen=True):
    """Deliveries that ended, since the endpoint was created."""

    successful: int
    failed: int


class WebhookEndpointView(Struct, rename="camel", frozen=True):
    id: str
    url: EndpointUrl
    description: Description | None
    environment: Environment
    secret_last4: str
    is_active: bool
    events: list[str]
    created_at: datetime
    delivery_summary: DeliverySummary

    @classmethod
    def of(cls, endpoint: WebhookEndpoint) -> "WebhookEndpointView":
        summary = DeliverySummary(endpoint.successful, endpoint.failed)
        return view_of(cls, endpoint, events=list(endpoint.events), delivery_summary=summary)


class CreatedWebhook(WebhookEndpointView, rename="camel", frozen=True, kw_only=True):
    """Only this answer and that of rotation show the secret."""

    signing_secret: Annotated[str, Meta(description="Shown once.", examples=["whsec_..."])]


class TestDelivery(Struct, rename="camel", frozen=True):
    """A test's result; `error`: why there was no 2xx answer."""

    __test__ = False  # not a test class, whatever its name says to pytest

    delivered: bool
    status_code: int | None
    duration_ms: int
    error: str | None


class DeliveryView(Struct, rename="camel", frozen=True):
    """One row of the delivery log, without the payload. `id` names the row; `eventId` is the header `webhook-id`."""

    id: str
    event_id: str
    event_type: str
    reference: str
    status: DeliveryStatus
    attempts: int
    last_status_code: int | None
    last_error: str | None
    duration_ms: int | None
    created_at: datetime
    last_attempt_at: datetime | None
    next_attempt_at: datetime | None

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        return view_of(cls, delivery)


class EventPage(Struct, rename="camel", frozen=True):
    """Past events, oldest first, each exactly as sent. Pass `nextCursor` as `after`, now or later."""

    events: list[EventBody]
    next_cursor: EventId | None
    has_more: bool
