"""A business's checkout settings: which options its payers have, in which order, under which names."""

from typing import Any

from litestar import Response
from markupsafe import Markup

from payagg.application.use_case import in_transaction
from payagg.domain.errors import must_exist
from payagg.domain.values import Environment
from payagg.entrypoints.http.checkout_page.states import first_choice, option
from payagg.extensions.console.api import part
from payagg.extensions.console.page_request import BASE, BusinessContext, PageRequest, Pages, business_context
from payagg.extensions.console.pages import root_of

routes = Pages("merchant")


@routes.page(BASE + "/checkout")
async def _checkout_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    path = f"{context.api}/payments"
    found = (await request.api.get(path, environment=context.environment, status="INITIATED", limit=1))["payments"]
    gateways = await request.api.get(f"{context.api}/gateways")
    facts = {
        "gateways": gateways,
        "options": await _preview(request, context),
        "open_url": f"{request.services.settings.base_url}/checkout/{found[0]['reference']}" if found else None,
    }
    return request.page("checkout", {"context": context, "section": "/checkout", **facts})


async def _preview(request: PageRequest, context: BusinessContext) -> list[Markup]:
    """The options of the payer's page, by its own template. The API shows them only with a payment."""
    services, business_id = request.services, context.business["id"]
    business = must_exist(await in_transaction(services.store, lambda tx: tx.businesses.get(business_id)))
    offered = await services.payment_options.list_offered(business, Environment(context.environment))
    chosen = first_choice(offered)
    return [option(one, one is chosen, root_of(services)) for one in offered]


@routes.form(BASE + "/checkout/{gateway_id:str}", back=_checkout_page)
async def change(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    gateways = await request.api.get(f"{context.api}/gateways")
    if "move" in request.form:
        await _move(request, context, gateways)
    else:
        own: dict[str, Any] = next((one for one in gateways if one["id"] == request.path["gateway_id"]), {})
        body: dict[str, Any] = {}
        if request.has_changed("display_name"):
            body["displayName"] = request.form_value("display_name")
        if request.has_changed("is_default"):
            body["isDefault"] = "is_default" in request.form
        if not own.get("isBuiltIn"):
            is_enabled = "is_enabled" in request.form
            body |= {"isEnabled": is_enabled} if request.has_changed("is_enabled") else {}
            if not is_enabled:  # it cannot be the default; disabling it clears the default
                body.pop("isDefault", None)
        await request.api.patch(f"{context.api}/gateways/{part(request.path['gateway_id'])}", body)
    return request.see_other(f"{context.url}/checkout", "checkout-changed")


async def _move(request: PageRequest, context: BusinessContext, gateways: list[dict[str, Any]]) -> None:
    """One place up or down among the ordered options; at an end nothing changes."""
    ids = [one["id"] for one in gateways if not one["isBuiltIn"]]
    if request.path["gateway_id"] not in ids:
        return
    here = ids.index(request.path["gateway_id"])
    there = here + (-1 if request.form["move"] == "up" else 1)
    if 0 <= there < len(ids):
        ids[here], ids[there] = ids[there], ids[here]
        order = [{"gatewayId": one, "displayOrder": number} for number, one in enumerate(ids)]
        await request.api.post(f"{context.api}/gateways/reorder", {"order": order})
