"""What became of payments: one payment's timeline, and a business's adjustments, which are refunds, disputes, and money
that came late, twice or short."""

import re

from payagg.application.accounts.access import Administrator, Manager
from payagg.application.ports.reports import AdjustmentFilter
from payagg.application.reports.search import adjustment_page
from payagg.application.reports.timeline import AdminPaymentStory, PaymentStory, admin_payment_story, payment_timeline
from payagg.application.schemas.payment_search import AdjustmentPage
from payagg.domain.errors import ErrorCode, invalid
from payagg.domain.payment_search import PAGE_DEFAULT, PAGE_MAX
from payagg.entrypoints.http.api.auth import admin_reads, manager_reads
from payagg.entrypoints.http.api.payment_search import ENVIRONMENT, TAG, own_environment
from payagg.entrypoints.http.server.routing import Call, route
from payagg.entrypoints.http.server.wire import integer_query, text_query

WORD_MAX = 64
_CURSOR = re.compile(r"anm_[0-9a-f]{32}")
_YES_OR_NO = {"true": True, "false": False, None: False}


@route(
    "GET",
    "/merchant/businesses/{business_id:str}/payments/{reference:str}/story",
    "getBusinessPaymentStory",
    "Show what happened to a business's payment",
    TAG,
    guard=manager_reads,
    query=ENVIRONMENT,
    query_required=("environment",),
    errors=(ErrorCode.PAYMENT_NOT_FOUND,),
    description="A payment of the other environment gets the answer to an unknown one.",
)
async def get_business_payment_story(call: Call[Manager, None]) -> PaymentStory:
    owner = (call.caller.business.id, own_environment(call.request))
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


@route(
    "GET",
    "/merchant/businesses/{business_id:str}/adjustments",
    "listAdjustments",
    "List a business's adjustments",
    TAG,
    guard=manager_reads,
    query={
        **ENVIRONMENT,
        "needsAttention": {"type": "string", "enum": ["true", "false"], "default": "false"},
        "after": {"type": "string", "pattern": "^anm_[0-9a-f]{32}$", "minLength": 36, "maxLength": 36},
        "limit": {"type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
    },
    query_required=("environment",),
    description="Newest first; a dispute is one adjustment in its present state. Pass `nextCursor` as `after` while "
    "`hasMore`. `needsAttention` lists only what a person must handle: open disputes, and money that came late, twice "
    "or too little, until an operator has closed it.",
)
async def list_adjustments(call: Call[Manager, None]) -> AdjustmentPage:
    limit = integer_query(call.request, "limit", PAGE_DEFAULT, 1, PAGE_MAX)
    return await adjustment_page(call.services.store, _filter(call), limit)


def _filter(call: Call[Manager, None]) -> AdjustmentFilter:
    environment = own_environment(call.request)
    needs, after = (text_query(call.request, name, WORD_MAX) for name in ("needsAttention", "after"))
    if needs not in _YES_OR_NO:
        raise invalid("needsAttention", "Must be true or false.")
    if after is not None and not _CURSOR.fullmatch(after):
        raise invalid("after", "Must be the nextCursor of an earlier answer.")
    return AdjustmentFilter(call.caller.business.id, environment, _YES_OR_NO[needs], after)


routes = [list_adjustments, get_business_payment_story, get_payment_story]
