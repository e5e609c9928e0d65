"""Payments, as merchants and administrators see them: the list, an export, one payment's timeline; and a business's
adjustments and test payments."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from litestar import Response

from payagg.domain.payment import Status
from payagg.domain.values import MAX_AMOUNT, MIN_AMOUNT, REFERENCE_SHAPE
from payagg.entrypoints.http.checkout_page.words import naira
from payagg.extensions.console.api import ApiRefused, part
from payagg.extensions.console.names import names_of, who
from payagg.extensions.console.page_request import BASE, BusinessContext, PageRequest, Pages, business_context

FILTERS = ("status", "from", "to", "search")
EXPORTED = ("status", "from", "to")
OPEN = ("INITIATED", "PENDING")
LIMIT = 50
SCANNED = 10  # pages that one search by status, name, amount or last six reads; the next continues from there
SCAN = 100  # payments of such a page
LAST = 6  # characters of a reference that a payer reads out
Find = Callable[[PageRequest, str, dict[str, Any], str], Awaitable[Any]]
NAIRA = re.compile(r"([0-9]{1,14}|[0-9]{1,3}(?:,[0-9]{3}){1,4})(?:[.]([0-9]{1,2}))?")


async def list_page(
    request: PageRequest, path: str, fixed: Mapping[str, str], names: tuple[str, ...], facts: Mapping[str, Any]
) -> Response[bytes]:
    """A page of the list at `path` of the API, filtered by the page's own parameters `names`; `fixed` are the API's
    alone."""
    wanted = query_values(request, names)
    request, found = await found_of(request, path, wanted, "payments", _find_page, **fixed)
    kept = {name: wanted[name] for name in names if wanted[name] and name != "search"}
    own = {
        "names": await names_of(request, facts.get("context")),
        "statuses": [status.value for status in Status],
        "export": urlencode(kept),
    }
    return request.page("payments", {**found, **own, **facts})


async def _find_page(request: PageRequest, path: str, query: dict[str, Any], after: str) -> Any:
    """A page of the API's list. The API finds a whole reference and an email, and a status on many pages where it is
    rare; for a name, an amount or the end of a reference the newest SCANNED pages are read, and the answer's cursor
    continues from there."""
    query = instants(query)
    term = query.pop("search")
    if REFERENCE_SHAPE.fullmatch(term.upper()):
        query["reference"] = term.upper()
    elif "@" in term:
        query["email"] = term
    elif term:
        return await _scan(request, path, query, term, after)
    for _ in range(SCANNED):
        found: dict[str, Any] = await request.api.get(path, **query, after=after, limit=LIMIT)
        after = found["nextCursor"]
        if found["payments"] or not found["hasMore"]:
            break
    return found


async def _scan(request: PageRequest, path: str, query: dict[str, str], term: str, after: str) -> dict[str, Any]:
    found: list[Any] = []
    for _ in range(SCANNED):
        page = await request.api.get(path, **query, after=after, limit=SCAN)
        found += [one for one in page["payments"] if _is_found(one.get("payment", one), term)]
        after = page["nextCursor"]
        if not page["hasMore"] or len(found) >= LIMIT:
            break
    return {**page, "payments": found}


def _is_found(payment: Mapping[str, Any], term: str) -> bool:
    is_last = len(term) == LAST and payment["reference"].endswith(term.upper())
    return is_last or payment["amount"] == kobo(term) or term.casefold() in (payment["customerName"] or "").casefold()


def kobo(naira: str) -> int | None:
    """None when it is no amount of naira. A comma parts thousands: "20,00" would be 20 in other countries."""
    found = NAIRA.fullmatch(naira.strip().removeprefix("₦"))
    return int(found[1].replace(",", "")) * 100 + int((found[2] or "0").ljust(2, "0")) if found else None


def query_values(request: PageRequest, names: tuple[str, ...]) -> dict[str, str]:
    """The parameters of the page's address by name, empty when absent."""
    return {name: request.query(name).strip() for name in names}


def instants(wanted: Mapping[str, str]) -> dict[str, str]:
    """The same for the API: a day of Lagos time is an instant there, and the last day is included here."""
    return {**wanted, "from": _day(wanted["from"], 0), "to": _day(wanted["to"], 1)}


def _day(text: str, later: int) -> str:
    try:
        return f"{date.fromisoformat(text) + timedelta(days=later)}T00:00:00+01:00" if text else ""
    except (ValueError, OverflowError):
        return text  # the API refuses it by name


async def _get(request: PageRequest, path: str, query: dict[str, Any], after: str) -> Any:
    return await request.api.get(path, **query, after=after)


async def found_of(
    request: PageRequest, path: str, wanted: Mapping[str, str], name: str, find: Find = _get, **fixed: Any
) -> tuple[PageRequest, dict[str, Any]]:
    """A list's content, under `name`, filtered by the page's parameters `wanted` and by the API's alone, `fixed`; a
    refused filter is shown above it."""
    shown: dict[str, Any] = {name: [], "nextCursor": None, "hasMore": False}
    after = request.query("after")
    try:
        shown = await find(request, path, {**fixed, **wanted}, after)
    except ApiRefused as refused:
        if refused.status != 400 or request.problem is not None:
            raise
        request = replace(request, problem=refused)
    kept = {key: value for key, value in wanted.items() if value}
    own = kept | ({"after": after} if after else {})
    links = {
        "first": f"?{urlencode(kept)}" if after else None,
        "next": f"?{urlencode({**kept, 'after': shown['nextCursor']})}" if shown["hasMore"] else None,
        "kept": f"?{urlencode(own)}" if own else "",
    }
    return request, {name: shown[name], "wanted": wanted, **links}


async def timeline_facts(
    request: PageRequest, story: Mapping[str, Any], context: BusinessContext | None = None
) -> dict[str, Any]:
    """What a payment's page shows beside its timeline. It reloads while the payment may still change."""
    payment = story["payment"]
    is_open = payment["status"] in OPEN
    waits = any(one["status"] == "PENDING" for one in story["deliveries"])
    checkout = f"{request.services.settings.base_url}/checkout/{payment['reference']}"
    return {
        "names": await names_of(request, context),
        "who": who,
        "story": story,
        "is_live": is_open or waits,
        "checkout_url": checkout if is_open else None,
    }


routes = Pages("merchant")
KEY_BYTES = 16


@routes.page(BASE + "/payments")
async def payments_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    facts = {"context": context, "section": "/payments", "is_admin": False}
    return await list_page(request, f"{context.api}/payments", {"environment": context.environment}, FILTERS, facts)


@routes.page(BASE + "/payments/export")
async def export(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    query = instants(query_values(request, EXPORTED))
    return request.api.stream(f"{context.api}/payments/export", environment=context.environment, **query)


@routes.page(BASE + "/payments/{reference:str}")
async def _story(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    path = f"{context.api}/payments/{part(request.path['reference'])}/story"
    facts = await timeline_facts(request, await request.api.get(path, environment=context.environment), context)
    return request.page(
        "payment", {"context": context, "section": "/payments", "is_admin": False, "owner": None, **facts}
    )


routes.action(
    BASE + "/payments/{reference:str}/simulate",
    "POST /merchant/businesses/{business_id}/test-payment/{reference}/simulate",
    "/console/business/{business_id}/{environment}/payments/{reference}",
    "simulated",
    back=_story,
    body=lambda sent: {"outcome": sent.form.get("outcome", "")},
)


@routes.page(BASE + "/adjustments")
async def adjustments_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    wanted, path = query_values(request, ("needsAttention",)), f"{context.api}/adjustments"
    environment = context.environment
    request, found = await found_of(request, path, wanted, "adjustments", environment=environment, limit=LIMIT)
    facts = {"context": context, "section": "/adjustments", "only_open": wanted["needsAttention"] == "true"}
    return request.page("adjustments", {**facts, **found})


@routes.page(BASE + "/test-payment")
async def _test_payment(request: PageRequest) -> Response[bytes]:
    # A form sent twice makes one payment.
    key = request.form.get("idempotency_key") or request.services.entropy.hex(KEY_BYTES)
    facts = {"context": await business_context(request), "section": "/test-payment", "idempotency_key": key}
    return request.page("test_payment", facts)


@routes.form(BASE + "/test-payment", back=_test_payment)
async def make_test_payment(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    amount = kobo(request.form.get("amount", ""))
    if amount is None or not MIN_AMOUNT <= amount <= MAX_AMOUNT:  # of which the API would tell in kobo
        bounds = f"from {naira(MIN_AMOUNT)} to {naira(MAX_AMOUNT)}"
        words = {"code": "VALIDATION_ERROR", "message": f"Give the amount in naira, as 1500 or 1500.00, {bounds}."}
        raise ApiRefused(400, {**words, "field": "amount"}, None)
    body = {"amount": amount, "customerEmail": request.form_value("customer_email")}
    made = await request.api.post(
        f"{context.api}/test-payment", {**body, "idempotencyKey": request.form_value("idempotency_key")}
    )
    return request.see_other(f"{context.home}/sandbox/payments/{made['reference']}")
