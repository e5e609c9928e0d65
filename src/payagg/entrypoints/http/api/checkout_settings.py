"""A business's own view of the gateways."""

from payagg.application.accounts.access import Manager
from payagg.application.schemas.gateways import GatewayWithBusinessSettings, ReorderGateways, UpdateBusinessGateway
from payagg.entrypoints.http.api.auth import by, manager_changes, manager_reads
from payagg.entrypoints.http.server.routing import KB, Call, Routes

routes = Routes("Merchant gateways")
BASE = "/merchant/businesses/{business_id:str}/gateways"


@routes.add("GET", BASE, "List the gateways of a business", guard=manager_reads)
async def list_business_gateways(call: Call[Manager, None]) -> list[GatewayWithBusinessSettings]:
    return await call.services.checkout_settings.list_gateways(call.caller.business.id)


@routes.add(
    "PATCH",
    BASE + "/{gateway_id:str}",
    "Change a gateway for a business",
    guard=manager_changes,
    body_max=2 * KB,
    description="The built-in gateway can be neither disabled nor reordered. Disabling clears the default flag.",
)
async def update_business_gateway(call: Call[Manager, UpdateBusinessGateway]) -> GatewayWithBusinessSettings:
    business_id, gateway_id = call.caller.business.id, call.path["gateway_id"]
    return await call.services.checkout_settings.update(business_id, gateway_id, call.body, by=by(call))


@routes.add(
    "POST",
    BASE + "/reorder",
    "Reorder the gateways of a business",
    guard=manager_changes,
    body_max=32 * KB,
    description="Every gateway must be active; the built-in one is ignored and stays first.",
)
async def reorder_business_gateways(call: Call[Manager, ReorderGateways]) -> list[GatewayWithBusinessSettings]:
    return await call.services.checkout_settings.reorder(call.caller.business.id, call.body, by=by(call))
