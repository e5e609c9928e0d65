"""A business's webhook endpoints, the logs of deliveries to them and to payments' own URLs, and past events."""

from typing import Any

from litestar import Response

from payagg.application.accounts.access import Manager
from payagg.application.ports.accounts import KeyHolder
from payagg.application.schemas.webhooks import (
    ChangeWebhook,
    CreatedWebhook,
    CreateWebhook,
    DeliveryView,
    EventPage,
    TestDelivery,
    WebhookEndpointView,
)
from payagg.domain.errors import ErrorCode, invalid
from payagg.domain.values import Environment
from payagg.domain.webhook import STORED_ENDPOINTS_MAX, TESTS_A_MINUTE, TESTS_AT_ONCE
from payagg.entrypoints.http.api.auth import by, manager_changes, manager_reads, secret_key
from payagg.entrypoints.http.api.payment_search import ENVIRONMENT, own_environment
from payagg.entrypoints.http.server.routing import KB, Call, Routes
from payagg.entrypoints.http.server.wire import (
    FLAG,
    after_parameter,
    after_query,
    cursor_parameters,
    cursor_query,
    flag_query,
    page_envelope,
    page_query,
)

routes = Routes("Webhooks")
BASE = "/merchant/businesses/{business_id:str}"
ONE = BASE + "/webhooks/{endpoint_id:str}"
OF_PAYMENT = BASE + "/payments/{reference:str}/deliveries"
EVENTS_DEFAULT = 50
EVENTS_MAX = 100


@routes.add("GET", BASE + "/webhooks", guard=manager_reads)
async def list_webhooks(call: Call[Manager, None]) -> list[WebhookEndpointView]:
    """List webhook endpoints. Of both environments, oldest first. Readable while the business is restricted."""
    return await call.services.webhooks.list_endpoints(call.caller.business.id)


@routes.add(
    "POST",
    BASE + "/webhooks",
    guard=manager_changes,
    body_max=64 * KB,
    status=201,
    errors=(ErrorCode.WEBHOOK_LIMIT_REACHED,),
    description="The signing secret is shown once. LIVE needs an https address. At most five may be active. "
    f"An environment keeps {STORED_ENDPOINTS_MAX}: beyond that the inactive ones that changed longest ago are removed.",
)
async def create_webhook(call: Call[Manager, CreateWebhook]) -> CreatedWebhook:
    """Create a webhook endpoint."""
    return await call.services.webhooks.create(call.caller.business.id, call.body, by=by(call))


@routes.add("PATCH", ONE, guard=manager_changes, body_max=64 * KB, errors=(ErrorCode.WEBHOOK_LIMIT_REACHED,))
async def update_webhook(call: Call[Manager, ChangeWebhook]) -> WebhookEndpointView:
    """Change a webhook endpoint. An absent field keeps its value. `isActive: true` activates an endpoint again."""
    return await call.services.webhooks.change(
        call.caller.business.id, call.path["endpoint_id"], call.body, by=by(call)
    )


@routes.add("DELETE", ONE, guard=manager_changes, query={"permanently": FLAG})
async def deactivate_webhook(call: Call[Manager, None]) -> WebhookEndpointView:
    """Deactivate a webhook endpoint. It stays in the list and can be activated again, until newer endpoints take its
    place. `permanently=true` removes it with its log."""
    webhooks, business_id, endpoint_id = call.services.webhooks, call.caller.business.id, call.path["endpoint_id"]
    if flag_query(call.request, "permanently"):
        return await webhooks.remove(business_id, endpoint_id, by=by(call))
    return await webhooks.deactivate(business_id, endpoint_id, by=by(call))


@routes.add(
    "POST",
    ONE + "/test",
    guard=manager_changes,
    description="Waits for your server's response, at most 15 seconds. Limits: one in 5 seconds for each endpoint; "
    f"{TESTS_A_MINUTE} in any minute and {TESTS_AT_ONCE} at once for each business.",
)
async def test_webhook(call: Call[Manager, None]) -> TestDelivery:
    """Send a test event now."""
    return await call.services.webhooks.test(call.caller.business.id, call.path["endpoint_id"], by=by(call))


@routes.add("POST", ONE + "/rotate-secret", guard=manager_changes)
async def rotate_webhook_secret(call: Call[Manager, None]) -> CreatedWebhook:
    """Rotate the signing secret. The new secret is shown once. The old one also signs for 24 hours."""
    return await call.services.webhooks.rotate_secret(call.caller.business.id, call.path["endpoint_id"], by=by(call))


@routes.add(
    "GET",
    ONE + "/deliveries",
    guard=manager_reads,
    returns=list[DeliveryView],
    paginated=True,
    query=after_parameter("dlv"),
)
async def list_webhook_deliveries(call: Call[Manager, None]) -> Response[bytes]:
    """Show the delivery log. Newest first, without payloads. Kept for 30 days. `after`, the id of the last delivery of
    the page before, finds a deep page faster than its number."""
    (page, per_page), after = page_query(call.request), after_query(call.request, "dlv")
    if after is not None and page > 1:
        raise invalid("page", "Must not be given with `after`.")
    business_id, endpoint_id = call.caller.business.id, call.path["endpoint_id"]
    rows, total = await call.services.delivery_log.of_endpoint(business_id, endpoint_id, page, per_page, after)
    if after is None:
        return page_envelope(rows, page, per_page, total)
    return page_envelope(rows, page, per_page, total, rows[-1].id if rows else after)


@routes.add("POST", ONE + "/deliveries/{delivery_id:str}/redeliver", guard=manager_changes)
async def redeliver_webhook(call: Call[Manager, None]) -> DeliveryView:
    """Send a delivery again. It has the same ids and the same bytes. The endpoint must be active."""
    endpoint_id, delivery_id = call.path["endpoint_id"], call.path["delivery_id"]
    return await call.services.delivery_log.redeliver(call.caller.business.id, endpoint_id, delivery_id, by=by(call))


_EVENT_PAGES = cursor_parameters("evt", EVENTS_DEFAULT, EVENTS_MAX)
_EVENTS = (
    "Oldest first. An event appears two seconds or more after its change. Pass `nextCursor` as `after` while `hasMore` "
    "is true; the cursor skips no event. A page of events with large metadata has fewer than `limit`."
)


@routes.add(
    "GET",
    BASE + "/events",
    guard=manager_reads,
    query={**ENVIRONMENT, **_EVENT_PAGES},
    query_required=("environment",),
    description=_EVENTS,
)
async def list_events(call: Call[Manager, None]) -> EventPage:
    """Page through past events."""
    return await _events(call, call.caller.business.id, own_environment(call.request))


@routes.add(
    "GET", "/events", guard=secret_key, query=_EVENT_PAGES, description=_EVENTS + " The key decides the environment."
)
async def list_events_of_key(call: Call[KeyHolder, None]) -> EventPage:
    """Page through past events with a secret key."""
    return await _events(call, call.caller.business.id, call.caller.key.environment)


async def _events(call: Call[Any, None], business_id: str, environment: Environment) -> EventPage:
    pages = cursor_query(call.request, "evt", EVENTS_DEFAULT, EVENTS_MAX)
    return await call.services.delivery_log.events(business_id, environment, *pages)


@routes.add("GET", OF_PAYMENT, guard=manager_reads, returns=list[DeliveryView], paginated=True)
async def list_payment_deliveries(call: Call[Manager, None]) -> Response[bytes]:
    """Show the delivery log of a payment's own webhookUrl. Newest first, without payloads. Kept for 30 days. Deliveries
    to endpoints are in the endpoints' logs."""
    page, per_page = page_query(call.request)
    reference = call.path["reference"]
    rows, total = await call.services.delivery_log.of_payment(call.caller.business.id, reference, page, per_page)
    return page_envelope(rows, page, per_page, total)


@routes.add("POST", OF_PAYMENT + "/{delivery_id:str}/redeliver", guard=manager_changes)
async def redeliver_to_payment(call: Call[Manager, None]) -> DeliveryView:
    """Send a delivery to a payment's own webhookUrl again. It has the same ids and the same bytes. An endpoint of the
    payment's environment must be active, because its secret signs."""
    reference, delivery_id = call.path["reference"], call.path["delivery_id"]
    business_id = call.caller.business.id
    return await call.services.delivery_log.redeliver_to_payment(business_id, reference, delivery_id, by=by(call))
