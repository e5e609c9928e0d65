"""A business's checkout settings: which options its payers have, in which order, under which names."""

from typing import Any

from litestar import Response

from payagg.entrypoints.http.console.api import part
from payagg.entrypoints.http.console.place import BASE, BusinessPlace, place_of
from payagg.entrypoints.http.console.visit import PageVisit, form, page


async def _shown(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    path = f"{place.api}/payments"
    found = (await visit.api.get(path, environment=place.environment, status="INITIATED", limit=1))["payments"]
    facts = {
        "gateways": await visit.api.get(f"{place.api}/gateways"),
        "open_url": f"{visit.services.settings.base_url}/checkout/{found[0]['reference']}" if found else None,
    }
    return visit.page("checkout", {"place": place, "section": "/checkout", **facts})


shown = page(BASE + "/checkout", "merchant")(_shown)


@form(BASE + "/checkout/{gateway_id:str}", "merchant", back=_shown)
async def change(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    gateways = await visit.api.get(f"{place.api}/gateways")
    if "move" in visit.form:
        await _move(visit, place, gateways)
    else:
        own: dict[str, Any] = next((one for one in gateways if one["id"] == visit.path["gateway_id"]), {})
        body: dict[str, Any] = {"displayName": visit.sent("display_name"), "isDefault": "is_default" in visit.form}
        if not own.get("isBuiltIn"):
            body["isEnabled"] = "is_enabled" in visit.form
            # An option that is off cannot be the default one; switching it off ends that by itself.
            body |= {} if body["isEnabled"] else {"isDefault": False}
        await visit.api.patch(f"{place.api}/gateways/{part(visit.path['gateway_id'])}", body)
    return visit.led_to(f"{place.url}/checkout", "checkout-changed")


async def _move(visit: PageVisit, place: BusinessPlace, gateways: list[dict[str, Any]]) -> None:
    """One place up or down among those that have an order of their own; at an end nothing changes."""
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
