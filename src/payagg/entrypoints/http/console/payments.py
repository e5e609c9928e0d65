"""A business's payments: list, export, one payment's story, test payments."""

from litestar import Response

from payagg.entrypoints.http.console.api import ApiRefused, part
from payagg.entrypoints.http.console.payment_list import (
    EXPORTED,
    FILTERS,
    asked,
    instants,
    kobo,
    list_page,
    story_facts,
)
from payagg.entrypoints.http.console.place import BASE, place_of
from payagg.entrypoints.http.console.visit import PageVisit, form, page

KEY_BYTES = 16


@page(BASE + "/payments", "merchant")
async def listed(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    facts = {"place": place, "section": "/payments", "is_admin": False}
    return await list_page(visit, f"{place.api}/payments", {"environment": place.environment}, FILTERS, facts)


@page(BASE + "/payments/export", "merchant")
async def export(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    query = instants(asked(visit, EXPORTED))
    return visit.api.stream(f"{place.api}/payments/export", environment=place.environment, **query)


async def _story(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    path = f"{place.api}/payments/{part(visit.path['reference'])}/story"
    facts = await story_facts(visit, await visit.api.get(path, environment=place.environment), place)
    return visit.page("payment", {"place": place, "section": "/payments", "is_admin": False, "owner": None, **facts})


story = page(BASE + "/payments/{reference:str}", "merchant")(_story)


@form(BASE + "/payments/{reference:str}/simulate", "merchant", back=_story)
async def simulate(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    reference = part(visit.path["reference"])
    body = {"outcome": visit.form.get("outcome", "")}
    await visit.api.post(f"{place.api}/test-payment/{reference}/simulate", body)
    return visit.led_to(f"{place.url}/payments/{reference}", "simulated")


async def _test_payment(visit: PageVisit) -> Response[bytes]:
    # A form that is sent twice makes one payment.
    key = visit.form.get("idempotency_key") or visit.services.payments.entropy.hex(KEY_BYTES)
    facts = {"place": await place_of(visit), "section": "/test-payment", "idempotency_key": key}
    return visit.page("test_payment", facts)


test_payment = page(BASE + "/test-payment", "merchant")(_test_payment)


@form(BASE + "/test-payment", "merchant", back=_test_payment)
async def make_test_payment(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    amount = kobo(visit.form.get("amount", ""))
    if amount is None:
        words = {"code": "VALIDATION_ERROR", "message": "Give the amount in naira, as 1500 or 1500.00."}
        raise ApiRefused(400, {**words, "field": "amount"}, None)
    body = {"amount": amount, "customerEmail": visit.sent("customer_email")}
    made = await visit.api.post(f"{place.api}/test-payment", {**body, "idempotencyKey": visit.sent("idempotency_key")})
    return visit.led_to(f"{place.home}/sandbox/payments/{made['reference']}")


routes = [listed, export, story, simulate, test_payment, make_test_payment]
