"""A business's checkout settings: which options its payers have, in which order, under which names."""

from typing import Any

from litestar import Response
from markupsafe import Markup

from payagg.application.gateways.payment_options import SIMULATOR_OPTION
from payagg.application.schemas.payments import CheckoutGateway
from payagg.domain.gateway import simulator_allowed
from payagg.domain.values import Environment
from payagg.entrypoints.http.checkout_page.states import option
from payagg.entrypoints.http.console.api import part
from payagg.entrypoints.http.console.pages import root_of
from payagg.entrypoints.http.console.place import BASE, BusinessContext, business_context
from payagg.entrypoints.http.console.visit import PageRequest, form, page


async def _checkout_page(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    path = f"{place.api}/payments"
    found = (await visit.api.get(path, environment=place.environment, status="INITIATED", limit=1))["payments"]
    gateways = await visit.api.get(f"{place.api}/gateways")
    facts = {
        "gateways": gateways,
        "options": _options(gateways, Environment(place.environment), root_of(visit.services)),
        "open_url": f"{visit.services.settings.base_url}/checkout/{found[0]['reference']}" if found else None,
    }
    return visit.page("checkout", {"place": place, "section": "/checkout", **facts})


def _options(gateways: list[dict[str, Any]], environment: Environment, root: str) -> list[Markup]:
    """The checkout page's own template with the enabled options."""
    options = [
        CheckoutGateway(
            slug=one["slug"],
            name=one["displayName"] or one["name"],
            description=one["description"],
            logo_url=one["logoUrl"],
            is_default=one["isDefault"],
            available=True,
            unavailable_reason=None,
        )
        for one in gateways
        if one["isEnabled"]
    ]
    options += [SIMULATOR_OPTION] if simulator_allowed(environment) else []
    chosen = next((one for one in options if one.is_default), options[0] if options else None)
    return [option(one, one is chosen, root) for one in options]


shown = page(BASE + "/checkout", "merchant")(_checkout_page)


@form(BASE + "/checkout/{gateway_id:str}", "merchant", back=_checkout_page)
async def change(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    gateways = await visit.api.get(f"{place.api}/gateways")
    if "move" in visit.form:
        await _move(visit, place, gateways)
    else:
        own: dict[str, Any] = next((one for one in gateways if one["id"] == visit.path["gateway_id"]), {})
        body: dict[str, Any] = {
            "displayName": visit.form_value("display_name"),
            "isDefault": "is_default" in visit.form,
        }
        if not own.get("isBuiltIn"):
            body["isEnabled"] = "is_enabled" in visit.form
            # A disabled option cannot be the default; disabling it clears the default.
            body |= {} if body["isEnabled"] else {"isDefault": False}
        await visit.api.patch(f"{place.api}/gateways/{part(visit.path['gateway_id'])}", body)
    return visit.see_other(f"{place.url}/checkout", "checkout-changed")


async def _move(visit: PageRequest, place: BusinessContext, gateways: list[dict[str, Any]]) -> None:
    """One place up or down among the ordered options; at an end nothing changes."""
    ids = [one["id"] for one in gateways if not one["isBuiltIn"]]
    if visit.path["gateway_id"] not in ids:
        return
    here = ids.index(visit.path["gateway_id"])
    there = here + (-1 if visit.form["move"] == "up" else 1)
    if 0 <= there < len(ids):
        ids[here], ids[there] = ids[there], ids[here]
        order = [{"gatewayId": one, "displayOrder": number} for number, one in enumerate(ids)]
        await visit.api.post(f"{place.api}/gateways/reorder", {"order": order})


routes = [shown, change]
