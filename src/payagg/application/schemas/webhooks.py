"""Requests and answers of webhooks, for merchants."""

from datetime import datetime
from typing import Annotated, Self

from msgspec import UNSET, Meta, Struct, UnsetType

from payagg.application.schemas.events import EventBody
from payagg.application.schemas.views import view_of
from payagg.domain.values import URL_MAX, Environment
from payagg.domain.webhook import (
    DESCRIPTION_MAX,
    EVENT_NAME_MAX,
    EVENT_NAMES_MAX,
    Delivery,
    DeliveryStatus,
    EventType,
    WebhookEndpoint,
)

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
EventId = Annotated[str, Meta(pattern="^evt_[0-9a-f]{32}$", min_length=36, max_length=36)]


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
