"""The audit trail: all of it for administrators, a business's own part for its managers."""

from collections.abc import Mapping
from typing import Any

from payagg.application.accounts.access import Administrator, Manager
from payagg.application.accounts.audit import AuditEntryView, AuditPage
from payagg.application.schemas.views import PAGE_DEFAULT, PAGE_MAX
from payagg.domain.audit import Action, AuditFilter
from payagg.domain.business import SUBJECT_MAX
from payagg.domain.payment_search import parse_range
from payagg.entrypoints.http.api.auth import admin_reads, manager_reads
from payagg.entrypoints.http.server.routing import AnyRequest, Call, Routes
from payagg.entrypoints.http.server.wire import WORD_MAX, cursor_parameters, cursor_query, text_query

routes = Routes("Audit")
ID_MAX = 64
DESCRIPTION = (
    "Newest first; pass `nextCursor` as `after`. `from` is inclusive, `to` is not. It shows no secret, and of "
    "credentials only the names that were set or removed."
)
FILTERS: Mapping[str, Any] = {
    "subject": {"type": "string", "maxLength": SUBJECT_MAX},
    "objectId": {"type": "string", "maxLength": SUBJECT_MAX},
    "action": {"type": "string", "enum": [action.value for action in Action]},
    "from": {"type": "string", "format": "date-time", "maxLength": WORD_MAX},
    "to": {"type": "string", "format": "date-time", "maxLength": WORD_MAX},
    **cursor_parameters("aud", PAGE_DEFAULT, PAGE_MAX),
}


@routes.add(
    "GET",
    "/admin/audit",
    guard=admin_reads,
    query={"businessId": {"type": "string", "maxLength": ID_MAX}, **FILTERS},
    description=DESCRIPTION,
)
async def list_audit(call: Call[Administrator, None]) -> AuditPage:
    """Show who changed what."""
    wanted = _filter(call.request, text_query(call.request, "businessId", ID_MAX))
    return await call.services.audit.page(wanted, *_cursor(call.request))


@routes.add(
    "GET",
    "/merchant/businesses/{business_id:str}/audit",
    guard=manager_reads,
    query=FILTERS,
    description=f"{DESCRIPTION} It does not show from which address an operator acted.",
)
async def list_business_audit(call: Call[Manager, None]) -> AuditPage:
    """Show who changed what in a business."""
    wanted = _filter(call.request, call.caller.business.id)
    return await call.services.audit.page(wanted, *_cursor(call.request), AuditEntryView.for_business)


def _filter(request: AnyRequest, business_id: str | None) -> AuditFilter:
    since, until = parse_range(text_query(request, "from", WORD_MAX), text_query(request, "to", WORD_MAX))
    return AuditFilter(
        business_id=business_id,
        subject=text_query(request, "subject", SUBJECT_MAX),
        object_id=text_query(request, "objectId", SUBJECT_MAX),
        action=text_query(request, "action", WORD_MAX),
        since=since,
        until=until,
    )


def _cursor(request: AnyRequest) -> tuple[str | None, int]:
    return cursor_query(request, "aud", PAGE_DEFAULT, PAGE_MAX)
