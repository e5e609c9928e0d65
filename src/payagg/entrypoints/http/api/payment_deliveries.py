"""The delivery log of one payment's own `webhookUrl`, for managers of its business."""

from litestar import Response

from payagg.application.accounts.access import Manager
from payagg.application.schemas.webhooks import DeliveryView
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.api.auth import by, manager_changes, manager_reads
from payagg.entrypoints.http.server.routing import Call, route
from payagg.entrypoints.http.server.wire import page_envelope, page_query

TAG = "Webhooks"
LOG = "/merchant/businesses/{business_id:str}/payments/{reference:str}/deliveries"


@route(
    "GET",
    LOG,
    "listPaymentDeliveries",
    "Show the delivery log of a payment's own webhookUrl",
    TAG,
    guard=manager_reads,
    returns=list[DeliveryView],
    paginated=True,
    errors=(ErrorCode.PAYMENT_NOT_FOUND,),
    description="Newest first, without payloads. Kept for 30 days. Deliveries to endpoints are in the endpoints' logs.",
)
async def list_payment_deliveries(call: Call[Manager, None]) -> Response[bytes]:
    page, per_page = page_query(call.request)
    reference = call.path["reference"]
    rows, total = await call.services.delivery_log.of_payment(call.caller.business.id, reference, page, per_page)
    return page_envelope(rows, page, per_page, total)


@route(
    "POST",
    LOG + "/{delivery_id:str}/redeliver",
    "redeliverToPayment",
    "Send a delivery to a payment's own webhookUrl again",
    TAG,
    guard=manager_changes,
    errors=(ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.NOT_FOUND),
    description="It has the same ids and the same bytes. An endpoint of the payment's environment must be active, "
    "because its secret signs.",
)
async def redeliver_to_payment(call: Call[Manager, None]) -> DeliveryView:
    reference, delivery_id = call.path["reference"], call.path["delivery_id"]
    business_id = call.caller.business.id
    return await call.services.delivery_log.redeliver_to_payment(business_id, reference, delivery_id, by=by(call))


routes = [list_payment_deliveries, redeliver_to_payment]
