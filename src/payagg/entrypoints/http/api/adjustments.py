"""A business's adjustments: refunds, disputes, and money that came late, twice or short."""

import re

from payagg.application.accounts.access import Manager
from payagg.application.ports.reports import AdjustmentFilter
from payagg.application.reports.search import adjustment_page
from payagg.application.schemas.payment_search import AdjustmentPage
from payagg.domain.errors import invalid
from payagg.domain.payment_search import PAGE_DEFAULT, PAGE_MAX
from payagg.domain.values import Environment
from payagg.entrypoints.http.api.auth import manager_reads
from payagg.entrypoints.http.server.routing import Call, route
from payagg.entrypoints.http.server.wire import integer_query, text_query

WORD_MAX = 64
_CURSOR = re.compile(r"anm_[0-9a-f]{32}")
_YES_OR_NO = {"true": True, "false": False, None: False}


@route(
    "GET",
    "/merchant/businesses/{business_id:str}/adjustments",
    "listAdjustments",
    "List a business's adjustments",
    "Payment search",
    guard=manager_reads,
    query={
        "environment": {"type": "string", "enum": [environment.value for environment in Environment]},
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
    environment, needs, after = (
        text_query(call.request, name, WORD_MAX) for name in ("environment", "needsAttention", "after")
    )
    if environment not in Environment.__members__:
        raise invalid("environment", "Must be SANDBOX or LIVE.")
    if needs not in _YES_OR_NO:
        raise invalid("needsAttention", "Must be true or false.")
    if after is not None and not _CURSOR.fullmatch(after):
        raise invalid("after", "Must be the nextCursor of an earlier answer.")
    return AdjustmentFilter(call.caller.business.id, Environment(environment), _YES_OR_NO[needs], after)


routes = [list_adjustments]
