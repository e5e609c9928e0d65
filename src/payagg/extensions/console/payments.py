"""A business's payments: list, export, one payment's timeline, adjustments, test payments."""

from litestar import Response

from payagg.extensions.console.api import ApiRefused, part
from payagg.extensions.console.business_context import BASE, business_context
from payagg.extensions.console.page_request import PageRequest, form, page
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

KEY_BYTES = 16


@page(BASE + "/payments", "merchant")
async def payments_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    facts = {"context": context, "section": "/payments", "is_admin": False}
    return await list_page(request, f"{context.api}/payments", {"environment": context.environment}, FILTERS, facts)


@page(BASE + "/payments/export", "merchant")
async def export(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    query = instants(query_values(request, EXPORTED))
    return request.api.stream(f"{context.api}/payments/export", environment=context.environment, **query)


async def _story(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    path = f"{context.api}/payments/{part(request.path['reference'])}/story"
    facts = await timeline_facts(request, await request.api.get(path, environment=context.environment), context)
    return request.page(
        "payment", {"context": context, "section": "/payments", "is_admin": False, "owner": None, **facts}
    )


story = page(BASE + "/payments/{reference:str}", "merchant")(_story)


@form(BASE + "/payments/{reference:str}/simulate", "merchant", back=_story)
async def simulate(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    reference = part(request.path["reference"])
    body = {"outcome": request.form.get("outcome", "")}
    await request.api.post(f"{context.api}/test-payment/{reference}/simulate", body)
    return request.see_other(f"{context.url}/payments/{reference}", "simulated")


@page(BASE + "/adjustments", "merchant")
async def adjustments_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    wanted, path = query_values(request, ("needsAttention",)), f"{context.api}/adjustments"
    environment = context.environment
    request, found = await found_of(request, path, wanted, "adjustments", environment=environment, limit=LIMIT)
    facts = {"context": context, "section": "/adjustments", "only_open": wanted["needsAttention"] == "true"}
    return request.page("adjustments", {**facts, **found})


async def _test_payment(request: PageRequest) -> Response[bytes]:
    # A form sent twice makes one payment.
    key = request.form.get("idempotency_key") or request.services.payments.entropy.hex(KEY_BYTES)
    facts = {"context": await business_context(request), "section": "/test-payment", "idempotency_key": key}
    return request.page("test_payment", facts)


test_payment = page(BASE + "/test-payment", "merchant")(_test_payment)


@form(BASE + "/test-payment", "merchant", back=_test_payment)
async def make_test_payment(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    amount = kobo(request.form.get("amount", ""))
    if amount is None:
        words = {"code": "VALIDATION_ERROR", "message": "Give the amount in naira, as 1500 or 1500.00."}
        raise ApiRefused(400, {**words, "field": "amount"}, None)
    body = {"amount": amount, "customerEmail": request.form_value("customer_email")}
    made = await request.api.post(
        f"{context.api}/test-payment", {**body, "idempotencyKey": request.form_value("idempotency_key")}
    )
    return request.see_other(f"{context.home}/sandbox/payments/{made['reference']}")


routes = [payments_page, export, story, simulate, adjustments_page, test_payment, make_test_payment]
