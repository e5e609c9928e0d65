"""A business's payments: list, export, one payment's timeline, adjustments, test payments."""

from litestar import Response

from payagg.domain.values import MAX_AMOUNT, MIN_AMOUNT
from payagg.entrypoints.http.checkout_page.words import naira
from payagg.extensions.console.api import ApiRefused, part
from payagg.extensions.console.business_context import BASE, business_context
from payagg.extensions.console.page_request import PageRequest, Pages
from payagg.extensions.console.payment_list import (
    EXPORTED,
    FILTERS,
    LIMIT,
    found_of,
    instants,
    kobo,
    list_page,
    query_values,
    timeline_facts,
)

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
