"""Payments in numbers: lists, summaries and exports, for a merchant's server, its dashboard and administrators."""

import re
from collections.abc import AsyncIterator
from typing import Any

from litestar import Response
from litestar.response import Stream

from payagg.application.access import Administrator, Manager
from payagg.application.payment_search import PaymentQuery
from payagg.application.schemas.payment_search import AdminPaymentPage, PaymentPage, PaymentSummary
from payagg.application.store import KeyHolder
from payagg.domain.errors import ErrorCode, invalid
from payagg.domain.payment import IDEMPOTENCY_KEY_MAX, Status
from payagg.domain.payment_search import CURSOR_LENGTH, PAGE_DEFAULT, PAGE_MAX, SUMMARY_MAX, PaymentFilter
from payagg.domain.values import EMAIL_MAX, Environment
from payagg.entrypoints.http.auth import admin_reads, manager_reads, secret_key
from payagg.entrypoints.http.routing import AnyRequest, Call, route
from payagg.entrypoints.http.wire import IS_HEAD, integer_query, text_query

TAG = "Payment search"
OF_BUSINESS = "/merchant/businesses/{business_id:str}/payments"
TEXT_MAX = 300  # of a parameter that is looked at more closely later
_BUSINESS_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INSTANT = {"type": "string", "format": "date-time", "maxLength": 40, "examples": ["2025-01-31T00:00:00Z"]}
_STATUS = {"status": {"type": "string", "enum": [status.value for status in Status]}}
_TIMES = {"from": _INSTANT, "to": _INSTANT}
_LISTED: dict[str, Any] = {
    **_STATUS,
    **_TIMES,
    "reference": {
        "type": "string",
        "minLength": 19,
        "maxLength": 19,
        "pattern": "^[A-Z][A-Z][A-Z]-[0-9]{8}-[A-Z0-9]{6}$",
        "examples": ["PAY-20250131-7K2M9X"],
    },
    "idempotencyKey": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_MAX, "examples": ["order-1001"]},
    "email": {"type": "string", "format": "email", "maxLength": EMAIL_MAX, "examples": ["ada@example.com"]},
    "after": {
        "type": "string",
        "minLength": CURSOR_LENGTH,
        "maxLength": CURSOR_LENGTH,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["MDYyY2ZmNDgzNTUwMDBQQVktMjAyNTAxMzEtN0syTTlY"],
    },
    "limit": {"type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
}
_ENVIRONMENT = {"environment": {"type": "string", "enum": [environment.value for environment in Environment]}}
_OWNER = {
    "businessId": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["biz_0194bb1c2f00"],
    },
    **_ENVIRONMENT,
}
_LIST_ERRORS = (ErrorCode.VALIDATION_ERROR, ErrorCode.INVALID_REFERENCE)
_LIST = "Newest first. Pass `nextCursor` as `after` while `hasMore`; no payment that commits late is passed by. "
LIST = _LIST + "`from` is inclusive, `to` is not; `email` is compared exactly."
SUMMARY = f"By UTC day of creation and present status, in kobo; `to` is at most {SUMMARY_MAX.days} days after `from`."
EXPORT = "UTF-8 with a header row, newest first; amounts in kobo. A text that a spreadsheet would take for a formula "
EXPORT += "has an apostrophe before it."


@route(
    "GET",
    "/payments",
    "listPayments",
    "List payments",
    TAG,
    guard=secret_key,
    returns=PaymentPage,
    query=_LISTED,
    errors=_LIST_ERRORS,
    description=LIST,
)
async def listed(call: Call[KeyHolder, None]) -> PaymentPage:
    return await _page(call, _of_key(call))


@route(
    "GET",
    "/payments/summary",
    "getPaymentSummary",
    "Add up payments by day and status",
    TAG,
    guard=secret_key,
    returns=PaymentSummary,
    query=_TIMES,
    query_required=("from", "to"),
    description=SUMMARY,
)
async def summary(call: Call[KeyHolder, None]) -> PaymentSummary:
    return await call.services.payment_search.summary(_of_key(call, "from", "to"))


@route(
    "GET",
    "/payments/export",
    "exportPayments",
    "Export payments as CSV",
    TAG,
    guard=secret_key,
    returns=bytes,
    media_types=("text/csv",),
    query={**_STATUS, **_TIMES},
    description=EXPORT,
)
async def export(call: Call[KeyHolder, None]) -> Response[Any]:
    return await _csv(call.request, call.services.payment_search.export(_of_key(call, "status", "from", "to")))


@route(
    "GET",
    OF_BUSINESS,
    "listBusinessPayments",
    "List a business's payments",
    TAG,
    guard=manager_reads,
    returns=PaymentPage,
    query={**_ENVIRONMENT, **_LISTED},
    query_required=("environment",),
    errors=_LIST_ERRORS,
    description=LIST,
)
async def listed_of_business(call: Call[Manager, None]) -> PaymentPage:
    return await _page(call, _of_business(call))


@route(
    "GET",
    OF_BUSINESS + "/summary",
    "getBusinessPaymentSummary",
    "Add up a business's payments by day and status",
    TAG,
    guard=manager_reads,
    returns=PaymentSummary,
    query={**_ENVIRONMENT, **_TIMES},
    query_required=("environment", "from", "to"),
    description=SUMMARY,
)
async def summary_of_business(call: Call[Manager, None]) -> PaymentSummary:
    return await call.services.payment_search.summary(_of_business(call, "from", "to"))


@route(
    "GET",
    OF_BUSINESS + "/export",
    "exportBusinessPayments",
    "Export a business's payments as CSV",
    TAG,
    guard=manager_reads,
    returns=bytes,
    media_types=("text/csv",),
    query={**_ENVIRONMENT, **_STATUS, **_TIMES},
    query_required=("environment",),
    description=EXPORT,
)
async def export_of_business(call: Call[Manager, None]) -> Response[Any]:
    return await _csv(call.request, call.services.payment_search.export(_of_business(call, "status", "from", "to")))


@route(
    "GET",
    "/admin/payments",
    "listAllPayments",
    "List the payments of all businesses",
    TAG,
    guard=admin_reads,
    returns=AdminPaymentPage,
    query={**_OWNER, **_LISTED},
    errors=_LIST_ERRORS,
    description=LIST + " `idempotencyKey` needs `businessId`.",
)
async def listed_of_all(call: Call[Administrator, None]) -> AdminPaymentPage:
    after, limit = _place(call.request)
    return await call.services.payment_search.page_of_all(_of_all(call), after, limit)


@route(
    "GET",
    "/admin/payments/summary",
    "getAllPaymentsSummary",
    "Add up the payments of all businesses by day and status",
    TAG,
    guard=admin_reads,
    returns=PaymentSummary,
    query={**_OWNER, **_TIMES},
    query_required=("from", "to"),
    description=SUMMARY,
)
async def summary_of_all(call: Call[Administrator, None]) -> PaymentSummary:
    return await call.services.payment_search.summary(_of_all(call, "from", "to"))


@route(
    "GET",
    "/admin/payments/export",
    "exportAllPayments",
    "Export the payments of all businesses as CSV",
    TAG,
    guard=admin_reads,
    returns=bytes,
    media_types=("text/csv",),
    query={**_OWNER, **_STATUS, **_TIMES},
    description=EXPORT,
)
async def export_of_all(call: Call[Administrator, None]) -> Response[Any]:
    rows = call.services.payment_search.export_of_all(_of_all(call, "status", "from", "to"))
    return await _csv(call.request, rows)


async def _page(call: Call[Any, None], wanted: PaymentFilter) -> PaymentPage:
    after, limit = _place(call.request)
    return await call.services.payment_search.page(wanted, after, limit)


def _place(request: AnyRequest) -> tuple[str | None, int]:
    return text_query(request, "after", TEXT_MAX), integer_query(request, "limit", PAGE_DEFAULT, 1, PAGE_MAX)


def _of_key(call: Call[KeyHolder, None], *names: str) -> PaymentFilter:
    return _query(call.request, names).filter(call.caller.business.id, call.caller.key.environment)


def _of_business(call: Call[Manager, None], *names: str) -> PaymentFilter:
    environment = _environment(call.request)
    if environment is None:
        raise invalid("environment", "Must be SANDBOX or LIVE.")
    return _query(call.request, names).filter(call.caller.business.id, environment)


def _of_all(call: Call[Administrator, None], *names: str) -> PaymentFilter:
    business_id = text_query(call.request, "businessId", TEXT_MAX)
    if business_id is not None and not _BUSINESS_ID.fullmatch(business_id):
        raise invalid("businessId", "Must be the id of a business.")
    return _query(call.request, names).filter(business_id, _environment(call.request))


def _environment(request: AnyRequest) -> Environment | None:
    text = text_query(request, "environment", TEXT_MAX)
    if text is not None and text not in Environment.__members__:
        raise invalid("environment", "Must be SANDBOX or LIVE.")
    return Environment(text) if text is not None else None


def _query(request: AnyRequest, names: tuple[str, ...]) -> PaymentQuery:
    """The parameters of these names, or all that a list takes."""

    def text(name: str) -> str | None:
        return text_query(request, name, TEXT_MAX) if not names or name in names else None

    return PaymentQuery(
        status=text("status"),
        since=text("from"),
        until=text("to"),
        reference=text("reference"),
        idempotency_key=text("idempotencyKey"),
        email=text("email"),
    )


async def _csv(request: AnyRequest, rows: AsyncIterator[bytes]) -> Response[Any]:
    """A stream of `rows`. The first page is read before the answer begins, so that what fails there has a status; what
    fails later breaks the answer off, which a client can tell from its end."""
    begun = [await anext(rows), await anext(rows, b"")]

    async def whole() -> AsyncIterator[bytes]:
        for part in begun:
            yield part
        if not request.scope.get(IS_HEAD):
            async for part in rows:
                yield part

    headers = {"Content-Disposition": 'attachment; filename="payments.csv"'}
    return Stream(whole(), media_type="text/csv", headers=headers)


routes = [
    listed,
    summary,
    export,
    listed_of_business,
    summary_of_business,
    export_of_business,
    listed_of_all,
    summary_of_all,
    export_of_all,
]
