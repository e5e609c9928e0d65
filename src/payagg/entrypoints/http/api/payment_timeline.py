"""One payment's timeline, for managers of its business and for administrators."""

from payagg.application.accounts.access import Administrator, Manager
from payagg.application.reports.timeline import AdminPaymentStory, PaymentStory, admin_payment_story, payment_timeline
from payagg.domain.errors import ErrorCode, invalid
from payagg.domain.values import Environment
from payagg.entrypoints.http.api.auth import admin_reads, manager_reads
from payagg.entrypoints.http.server.routing import Call, route
from payagg.entrypoints.http.server.wire import text_query

TAG = "Payment search"
WORD_MAX = 10


@route(
    "GET",
    "/merchant/businesses/{business_id:str}/payments/{reference:str}/story",
    "getBusinessPaymentStory",
    "Show what happened to a business's payment",
    TAG,
    guard=manager_reads,
    query={"environment": {"type": "string", "enum": [environment.value for environment in Environment]}},
    query_required=("environment",),
    errors=(ErrorCode.PAYMENT_NOT_FOUND,),
    description="A payment of the other environment gets the answer to an unknown one.",
)
async def get_business_payment_story(call: Call[Manager, None]) -> PaymentStory:
    text = text_query(call.request, "environment", WORD_MAX)
    if text not in Environment.__members__:
        raise invalid("environment", "Must be SANDBOX or LIVE.")
    owner = (call.caller.business.id, Environment(text))
    return await payment_timeline(call.services.store, call.services.clock, call.path["reference"], owner=owner)


@route(
    "GET",
    "/admin/payments/{reference:str}/story",
    "getPaymentStory",
    "Show what happened to a payment",
    TAG,
    guard=admin_reads,
    errors=(ErrorCode.PAYMENT_NOT_FOUND,),
    description="It includes what operators need to find each charge at its provider.",
)
async def get_payment_story(call: Call[Administrator, None]) -> AdminPaymentStory:
    services = call.services
    sealed = services.payment_options.gateway_credentials
    return await admin_payment_story(services.store, services.clock, sealed, call.path["reference"])


routes = [get_business_payment_story, get_payment_story]
