"""What became of payments: one payment's timeline, and a business's adjustments, which are refunds, disputes, and money
that came late, twice or short."""

from payagg.application.accounts.access import Administrator, Manager
from payagg.application.ports.reports import AdjustmentFilter
from payagg.application.reports.search import adjustment_page
from payagg.application.reports.timeline import AdminPaymentStory, PaymentStory, admin_payment_story, payment_timeline
from payagg.application.schemas.payment_search import AdjustmentPage
from payagg.domain.payment_search import PAGE_DEFAULT, PAGE_MAX
from payagg.entrypoints.http.api.auth import admin_reads, manager_reads
from payagg.entrypoints.http.api.payment_search import ENVIRONMENT, own_environment
from payagg.entrypoints.http.server.routing import Call, Routes
from payagg.entrypoints.http.server.wire import FLAG, cursor_parameters, cursor_query, flag_query

routes = Routes("Payment search")


@routes.add(
    "GET",
    "/merchant/businesses/{business_id:str}/adjustments",
    guard=manager_reads,
    query={
        **ENVIRONMENT,
        "needsAttention": FLAG,
        **cursor_parameters("anm", PAGE_DEFAULT, PAGE_MAX),
    },
    query_required=("environment",),
)
async def list_adjustments(call: Call[Manager, None]) -> AdjustmentPage:
    """List a business's adjustments. Newest first; a dispute is one adjustment in its present state. Pass `nextCursor`
    as `after` while `hasMore`. `needsAttention` lists only what a person must handle: open disputes, and money that
    came late, twice or too little, until an operator has closed it."""
    environment, needs = own_environment(call.request), flag_query(call.request, "needsAttention")
    after, limit = cursor_query(call.request, "anm", PAGE_DEFAULT, PAGE_MAX)
    wanted = AdjustmentFilter(call.caller.business.id, environment, needs, after)
    return await adjustment_page(call.services.store, wanted, limit)


@routes.add(
    "GET",
    "/merchant/businesses/{business_id:str}/payments/{reference:str}/story",
    guard=manager_reads,
    query=ENVIRONMENT,
    query_required=("environment",),
)
async def get_business_payment_story(call: Call[Manager, None]) -> PaymentStory:
    """Show what happened to a business's payment. A payment of the other environment gets the answer to an unknown
    one."""
    owner = (call.caller.business.id, own_environment(call.request))
    return await payment_timeline(call.services.store, call.services.clock, call.path["reference"], owner=owner)


@routes.add("GET", "/admin/payments/{reference:str}/story", guard=admin_reads)
async def get_payment_story(call: Call[Administrator, None]) -> AdminPaymentStory:
    """Show what happened to a payment. It includes what operators need to find each charge at its provider."""
    services = call.services
    sealed = services.payment_options.gateway_credentials
    return await admin_payment_story(services.store, services.clock, sealed, call.path["reference"])
