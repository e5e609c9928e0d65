"""Lists, summaries and exports of payments, for a merchant's server, its dashboard and administrators."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from litestar import Response

from payagg.application.accounts.access import Administrator, Manager
from payagg.application.ports.accounts import KeyHolder
from payagg.application.schemas.payment_search import AdminPaymentPage, PaymentPage, PaymentSummary
from payagg.domain.errors import ErrorCode, invalid
from payagg.domain.payment import IDEMPOTENCY_KEY_MAX, Status
from payagg.domain.payment_search import (
    CURSOR_LENGTH,
    PAGE_DEFAULT,
    PAGE_MAX,
    SUMMARY_MAX,
    SUMMARY_PAYMENTS,
    PaymentFilter,
    parse_range,
)
from payagg.domain.values import EMAIL_MAX, Environment, parse_email, parse_reference
from payagg.entrypoints.http.api.auth import admin_reads, manager_reads, secret_key
from payagg.entrypoints.http.server.routing import AnyRequest, Call, Guard, Routes
from payagg.entrypoints.http.server.wire import csv_stream, integer_query, text_query, word_query

routes = Routes("Payment search")
TEXT_MAX = 300  # of a parameter that is checked later
_BUSINESS_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INSTANT = {"type": "string", "format": "date-time", "maxLength": 40, "examples": ["2025-01-31T00:00:00Z"]}
_STATUS = {"status": {"type": "string", "enum": [status.value for status in Status]}}
_TIMES = {"from": _INSTANT, "to": _INSTANT}
_EMAIL = {"type": "string", "format": "email", "maxLength": EMAIL_MAX, "examples": ["ada@example.com"]}
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
    "customerEmail": _EMAIL,
    "email": {**_EMAIL, "description": "The same as `customerEmail`."},
    "after": {
        "type": "string",
        "minLength": CURSOR_LENGTH,
        "maxLength": CURSOR_LENGTH,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["MDYyY2ZmNDgzNTUwMDBQQVktMjAyNTAxMzEtN0syTTlY"],
    },
    "limit": {"type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT},
}
ENVIRONMENT = {"environment": {"type": "string", "enum": [environment.value for environment in Environment]}}
_OWNER = {
    "businessId": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["biz_0194bb1c2f00"],
    },
    **ENVIRONMENT,
}
_LIST = "Newest first. Pass `nextCursor` as `after` while `hasMore`; the cursor skips no payment. "
LIST = _LIST + "`from` is inclusive, `to` is not; letter case does not matter in an email address."
SUMMARY = f"By UTC day of creation and present status, in kobo; `to` is at most {SUMMARY_MAX.days} days after `from`, "
SUMMARY += f"with at most {SUMMARY_PAYMENTS:,} payments between them."
SUMMARY_CSV = (
    "UTF-8 with a header row, oldest day first: a row for each status of a day's payments, with `status`, and for "
)
SUMMARY_CSV += f"each kind of its adjustments, with `adjustment`. {SUMMARY}"
EXPORT = "UTF-8 with a header row, newest first; amounts in kobo. A text that a spreadsheet would read as a formula "
EXPORT += "begins with an apostrophe."


@dataclass(frozen=True)
class _Audience:
    """The caller, the paths, and whose payments. `chosen` reads what of a list's parameters came."""

    path: str
    guard: Guard[Any]
    ids: tuple[str, str, str, str]  # of the list, the summary, the summary as CSV and the export
    whose: str
    chosen: Callable[[Call[Any, None]], PaymentFilter]
    query: dict[str, Any] = field(default_factory=dict)  # beside the filter's
    required: tuple[str, ...] = ()
    sees_owners: bool = False


def routes_for(audience: _Audience) -> None:
    """Adds the list, the summary, the same as CSV, and the export."""
    list_id, summary_id, summary_csv_id, export_id = audience.ids
    path, guard, own, required = audience.path, audience.guard, audience.query, audience.required
    # One merchant's reports must not delay the others.
    busy = () if audience.sees_owners else (ErrorCode.RATE_LIMITED,)
    one_at_a_time = "" if audience.sees_owners else " One at a time for each business."

    @routes.add(
        "GET",
        path,
        summary=f"List {audience.whose}",
        id=list_id,
        guard=guard,
        returns=AdminPaymentPage if audience.sees_owners else PaymentPage,
        query={**own, **_LISTED},
        query_required=required,
        errors=(ErrorCode.INVALID_REFERENCE,),
        description=LIST + (" `idempotencyKey` needs `businessId`." if audience.sees_owners else ""),
    )
    async def list_payments(call: Call[Any, None]) -> PaymentPage | AdminPaymentPage:
        search, wanted = call.services.payment_search, audience.chosen(call)
        after = text_query(call.request, "after", TEXT_MAX)
        limit = integer_query(call.request, "limit", PAGE_DEFAULT, 1, PAGE_MAX)
        return await (search.page_of_all if audience.sees_owners else search.page)(wanted, after, limit)

    @routes.add(
        "GET",
        f"{path}/summary",
        summary=f"Add up {audience.whose} by day and status",
        id=summary_id,
        guard=guard,
        query={**own, **_TIMES},
        query_required=(*required, "from", "to"),
        errors=busy,
        description=SUMMARY + one_at_a_time,
    )
    async def summary(call: Call[Any, None]) -> PaymentSummary:
        return await call.services.payment_search.summary(audience.chosen(call), of_all=audience.sees_owners)

    @routes.add(
        "GET",
        f"{path}/summary.csv",
        summary=f"Add up {audience.whose} by day and status, as CSV",
        id=summary_csv_id,
        guard=guard,
        returns=bytes,
        media_types=("text/csv",),
        query={**own, **_TIMES},
        query_required=(*required, "from", "to"),
        errors=busy,
        description=SUMMARY_CSV + one_at_a_time,
    )
    async def summary_csv(call: Call[Any, None]) -> Response[bytes]:
        search, wanted = call.services.payment_search, audience.chosen(call)
        content = await search.summary_csv(wanted, of_all=audience.sees_owners)
        headers = {"Content-Disposition": 'attachment; filename="summary.csv"'}
        return Response(content, media_type="text/csv", headers=headers)

    @routes.add(
        "GET",
        f"{path}/export",
        summary=f"Export {audience.whose} as CSV",
        id=export_id,
        guard=guard,
        returns=bytes,
        media_types=("text/csv",),
        query={**own, **_STATUS, **_TIMES},
        query_required=required,
        errors=busy,
        description=EXPORT + one_at_a_time,
    )
    async def export(call: Call[Any, None]) -> Response[Any]:
        search, wanted = call.services.payment_search, audience.chosen(call)
        rows = (search.export_of_all if audience.sees_owners else search.export)(wanted)
        return await csv_stream(call.request, rows, "payments.csv")


def _of_key(call: Call[KeyHolder, None]) -> PaymentFilter:
    return _filter(call.request, call.caller.business.id, call.caller.key.environment)


def _of_business(call: Call[Manager, None]) -> PaymentFilter:
    return _filter(call.request, call.caller.business.id, own_environment(call.request))


def _of_all(call: Call[Administrator, None]) -> PaymentFilter:
    business_id = text_query(call.request, "businessId", TEXT_MAX)
    if business_id is not None and not _BUSINESS_ID.fullmatch(business_id):
        raise invalid("businessId", "Must be the id of a business.")
    return _filter(call.request, business_id, word_query(call.request, "environment", Environment))


def own_environment(request: AnyRequest) -> Environment:
    """Of a manager's call, which must name it; raises VALIDATION_ERROR."""
    environment = word_query(request, "environment", Environment)
    if environment is None:
        raise invalid("environment", "Must be SANDBOX or LIVE.")
    return environment


def _filter(request: AnyRequest, business_id: str | None, environment: Environment | None) -> PaymentFilter:
    """What came of a list's parameters; raises INVALID_REFERENCE or VALIDATION_ERROR naming the parameter."""
    status = word_query(request, "status", Status)
    since, until = parse_range(text_query(request, "from", TEXT_MAX), text_query(request, "to", TEXT_MAX))
    reference = text_query(request, "reference", TEXT_MAX)
    if reference is not None:
        parse_reference(reference)
    key = text_query(request, "idempotencyKey", TEXT_MAX)
    if key is not None:
        if not 1 <= len(key) <= IDEMPOTENCY_KEY_MAX:
            raise invalid("idempotencyKey", f"Must have 1 to {IDEMPOTENCY_KEY_MAX} characters.")
        if business_id is None:
            raise invalid("businessId", "Must be given with idempotencyKey: a key is unique within a business.")
    email, same = text_query(request, "email", TEXT_MAX), text_query(request, "customerEmail", TEXT_MAX)
    for name, address in (("email", email), ("customerEmail", same)):
        if address is not None:
            parse_email(address, name)
    if email is not None and same is not None and email.lower() != same.lower():
        raise invalid("customerEmail", "Must be the same as email, or stand alone.")
    return PaymentFilter(business_id, environment, status, since, until, reference, key, email or same)


for _audience in (
    _Audience(
        "/payments",
        secret_key,
        ("listPayments", "getPaymentSummary", "getPaymentSummaryCsv", "exportPayments"),
        "payments",
        _of_key,
    ),
    _Audience(
        "/merchant/businesses/{business_id:str}/payments",
        manager_reads,
        (
            "listBusinessPayments",
            "getBusinessPaymentSummary",
            "getBusinessPaymentSummaryCsv",
            "exportBusinessPayments",
        ),
        "a business's payments",
        _of_business,
        ENVIRONMENT,
        ("environment",),
    ),
    _Audience(
        "/admin/payments",
        admin_reads,
        ("listAllPayments", "getAllPaymentsSummary", "getAllPaymentsSummaryCsv", "exportAllPayments"),
        "the payments of all businesses",
        _of_all,
        _OWNER,
        sees_owners=True,
    ),
):
    routes_for(_audience)
