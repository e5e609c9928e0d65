"""A business's payments: list, export, one payment's timeline, test payments."""

from litestar import Response

from payagg.entrypoints.http.console.api import ApiRefused, part
from payagg.entrypoints.http.console.payment_list import (
    EXPORTED,
    FILTERS,
    instants,
    kobo,
    list_page,
    query_values,
    timeline_facts,
)
from payagg.entrypoints.http.console.place import BASE, business_context
from payagg.entrypoints.http.console.visit import PageRequest, form, page

KEY_BYTES = 16


@page(BASE + "/payments", "merchant")
async def payments_page(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    facts = {"place": place, "section": "/payments", "is_admin": False}
    return await list_page(visit, f"{place.api}/payments", {"environment": place.environment}, FILTERS, facts)


@page(BASE + "/payments/export", "merchant")
async def export(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    query = instants(query_values(visit, EXPORTED))
    return visit.api.stream(f"{place.api}/payments/export", environment=place.environment, **query)


async def _story(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    path = f"{place.api}/payments/{part(visit.path['reference'])}/story"
    facts = await timeline_facts(visit, await visit.api.get(path, environment=place.environment), place)
    return visit.page("payment", {"place": place, "section": "/payments", "is_admin": False, "owner": None, **facts})


story = page(BASE + "/payments/{reference:str}", "merchant")(_story)


@form(BASE + "/payments/{reference:str}/simulate", "merchant", back=_story)
async def simulate(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    reference = part(visit.path["reference"])
    body = {"outcome": visit.form.get("outcome", "")}
    await visit.api.post(f"{place.api}/test-payment/{reference}/simulate", body)
    return visit.see_other(f"{place.url}/payments/{reference}", "simulated")


async def _test_payment(visit: PageRequest) -> Response[bytes]:
    # A form sent twice makes one payment.
    key = visit.form.get("idempotency_key") or visit.services.payments.entropy.hex(KEY_BYTES)
    facts = {"place": await business_context(visit), "section": "/test-payment", "idempotency_key": key}
    return visit.page("test_payment", facts)


test_payment = page(BASE + "/test-payment", "merchant")(_test_payment)


@form(BASE + "/test-payment", "merchant", back=_test_payment)
async def make_test_payment(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    amount = kobo(visit.form.get("amount", ""))
    if amount is None:
        words = {"code": "VALIDATION_ERROR", "message": "Give the amount in naira, as 1500 or 1500.00."}
        raise ApiRefused(400, {**words, "field": "amount"}, None)
    body = {"amount": amount, "customerEmail": visit.form_value("customer_email")}
    made = await visit.api.post(
        f"{place.api}/test-payment", {**body, "idempotencyKey": visit.form_value("idempotency_key")}
    )
    return visit.see_other(f"{place.home}/sandbox/payments/{made['reference']}")


routes = [payments_page, export, story, simulate, test_payment, make_test_payment]
