"""A business's webhook endpoints, their delivery logs, and past events."""

from typing import Any

from litestar import Request, Response, delete, get, patch, post
from litestar.params import FromPath

from payagg.application.schemas.webhooks import (
    ChangeWebhook,
    CreatedWebhook,
    CreateWebhook,
    DeliveryView,
    EventPage,
    TestDelivery,
    WebhookEndpointView,
)
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.auth import manager, services
from payagg.entrypoints.http.wire import (
    decoded,
    describe,
    envelope,
    integer_query,
    page_envelope,
    page_query,
    text_query,
)

TAG = "Webhooks"
BASE = "/merchant/businesses/{business_id:str}"
ONE = BASE + "/webhooks/{endpoint_id:str}"
EVENTS_DEFAULT = 50
EVENTS_MAX = 100
CURSOR_MAX = 100
_CHANGES = (ErrorCode.BUSINESS_RESTRICTED, ErrorCode.NOT_FOUND)

AnyRequest = Request[Any, Any, Any]


@get(
    BASE + "/webhooks",
    opt=describe(
        "listWebhooks",
        "List webhook endpoints",
        TAG,
        returns=list[WebhookEndpointView],
        description="Of both environments, oldest first. Readable while the business is restricted.",
    ),
)
async def list_webhooks(request: AnyRequest, business_id: FromPath[str]) -> Response[bytes]:
    await manager(request, business_id, changes=False)
    return envelope(await services(request).webhooks.listed(business_id))


@post(
    BASE + "/webhooks",
    opt=describe(
        "createWebhook",
        "Create a webhook endpoint",
        TAG,
        body=CreateWebhook,
        returns=CreatedWebhook,
        status=201,
        errors=(ErrorCode.BUSINESS_RESTRICTED, ErrorCode.WEBHOOK_LIMIT_REACHED),
        description="The signing secret is shown once. LIVE needs an https address.",
    ),
)
async def create_webhook(request: AnyRequest, business_id: FromPath[str]) -> Response[bytes]:
    await manager(request, business_id, changes=True)
    command = await decoded(request, CreateWebhook)
    return envelope(await services(request).webhooks.create(business_id, command), 201)


@patch(
    ONE,
    opt=describe(
        "updateWebhook",
        "Change a webhook endpoint",
        TAG,
        body=ChangeWebhook,
        returns=WebhookEndpointView,
        errors=(*_CHANGES, ErrorCode.WEBHOOK_LIMIT_REACHED),
    ),
)
async def change_webhook(
    request: AnyRequest, business_id: FromPath[str], endpoint_id: FromPath[str]
) -> Response[bytes]:
    await manager(request, business_id, changes=True)
    command = await decoded(request, ChangeWebhook)
    return envelope(await services(request).webhooks.change(business_id, endpoint_id, command))


@delete(
    ONE,
    status_code=200,
    opt=describe(
        "deactivateWebhook", "Deactivate a webhook endpoint", TAG, returns=WebhookEndpointView, errors=_CHANGES
    ),
)
async def deactivate_webhook(
    request: AnyRequest, business_id: FromPath[str], endpoint_id: FromPath[str]
) -> Response[bytes]:
    await manager(request, business_id, changes=True)
    return envelope(await services(request).webhooks.deactivate(business_id, endpoint_id))


@post(
    ONE + "/test",
    status_code=200,
    opt=describe(
        "testWebhook",
        "Send a test event now",
        TAG,
        returns=TestDelivery,
        errors=(*_CHANGES, ErrorCode.RATE_LIMITED),
        description="Waits for the answer, at most 15 seconds. Once in 5 seconds for each endpoint.",
    ),
)
async def test_webhook(request: AnyRequest, business_id: FromPath[str], endpoint_id: FromPath[str]) -> Response[bytes]:
    await manager(request, business_id, changes=True)
    return envelope(await services(request).webhooks.test(business_id, endpoint_id))


@post(
    ONE + "/rotate-secret",
    status_code=200,
    opt=describe(
        "rotateWebhookSecret",
        "Rotate the signing secret",
        TAG,
        returns=CreatedWebhook,
        errors=_CHANGES,
        description="The new secret is shown once. The old one also signs for 24 hours.",
    ),
)
async def rotate_secret(request: AnyRequest, business_id: FromPath[str], endpoint_id: FromPath[str]) -> Response[bytes]:
    await manager(request, business_id, changes=True)
    return envelope(await services(request).webhooks.rotate_secret(business_id, endpoint_id))


@get(
    ONE + "/deliveries",
    opt=describe(
        "listWebhookDeliveries",
        "Show the delivery log",
        TAG,
        returns=list[DeliveryView],
        paginated=True,
        errors=(ErrorCode.NOT_FOUND,),
        description="Newest first, without payloads. Kept for 30 days.",
    ),
)
async def list_deliveries(
    request: AnyRequest, business_id: FromPath[str], endpoint_id: FromPath[str]
) -> Response[bytes]:
    await manager(request, business_id, changes=False)
    page, per_page = page_query(request)
    rows, total = await services(request).webhooks.deliveries(business_id, endpoint_id, page, per_page)
    return page_envelope(rows, page, per_page, total)


@post(
    ONE + "/deliveries/{delivery_id:str}/redeliver",
    status_code=200,
    opt=describe(
        "redeliverWebhook",
        "Send a delivery again",
        TAG,
        returns=DeliveryView,
        errors=(*_CHANGES, ErrorCode.VALIDATION_ERROR),
        description="Under the same ids and with the same bytes. The endpoint must be active.",
    ),
)
async def redeliver(
    request: AnyRequest, business_id: FromPath[str], endpoint_id: FromPath[str], delivery_id: FromPath[str]
) -> Response[bytes]:
    await manager(request, business_id, changes=True)
    return envelope(await services(request).webhooks.redeliver(business_id, endpoint_id, delivery_id))


@get(
    BASE + "/events",
    opt=describe(
        "listEvents",
        "Page through past events",
        TAG,
        returns=EventPage,
        query={
            "environment": {"type": "string", "enum": ["SANDBOX", "LIVE"]},
            "after": {"type": "string", "pattern": "^evt_[0-9a-f]{32}$", "minLength": 36, "maxLength": 36},
            "limit": {
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": EVENTS_MAX,
                "default": EVENTS_DEFAULT,
            },
        },
        query_required=("environment",),
        errors=(ErrorCode.VALIDATION_ERROR,),
        description="Oldest first. Pass `nextCursor` as `after`; no event that commits late is ever passed by.",
    ),
)
async def list_events(request: AnyRequest, business_id: FromPath[str]) -> Response[bytes]:
    await manager(request, business_id, changes=False)
    environment = text_query(request, "environment", 10)
    after = text_query(request, "after", CURSOR_MAX)
    limit = integer_query(request, "limit", EVENTS_DEFAULT, 1, EVENTS_MAX)
    return envelope(await services(request).webhooks.events(business_id, environment, after, limit))


routes: list[Any] = [
    list_webhooks,
    create_webhook,
    change_webhook,
    deactivate_webhook,
    test_webhook,
    rotate_secret,
    list_deliveries,
    redeliver,
    list_events,
]
