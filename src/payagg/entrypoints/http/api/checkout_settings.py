"""A business's own view of the gateways."""

from payagg.application.accounts.access import Manager
from payagg.application.schemas.gateways import GatewayWithBusinessSettings, ReorderGateways, UpdateBusinessGateway
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.api.auth import by, manager_changes, manager_reads
from payagg.entrypoints.http.server.routing import KB, Call, route

TAG = "Merchant gateways"
BASE = "/merchant/businesses/{business_id:str}/gateways"


@route("GET", BASE, "listBusinessGateways", "List the gateways of a business", TAG, guard=manager_reads)
async def list_business_gateways(call: Call[Manager, None]) -> list[GatewayWithBusinessSettings]:
    return await call.services.checkout_settings.list_gateways(call.caller.business.id)


@route(
    "PATCH",
    BASE + "/{gateway_id:str}",
    "updateBusinessGateway",
    "Change a gateway for a business",
    TAG,
    guard=manager_changes,
    body_max=2 * KB,
    errors=(ErrorCode.NOT_FOUND,),
    description="The built-in gateway can be neither disabled nor reordered. Disabling clears the default flag.",
)
async def update_business_gateway(call: Call[Manager, UpdateBusinessGateway]) -> GatewayWithBusinessSettings:
    business_id, gateway_id = call.caller.business.id, call.path["gateway_id"]
    return await call.services.checkout_settings.update(business_id, gateway_id, call.body, by=by(call))


@route(
    "POST",
    BASE + "/reorder",
    "reorderBusinessGateways",
    "Reorder the gateways of a business",
    TAG,
    guard=manager_changes,
    body_max=32 * KB,
    description="Every gateway must be active; the built-in one is ignored and stays first.",
)
async def reorder_business_gateways(call: Call[Manager, ReorderGateways]) -> list[GatewayWithBusinessSettings]:
    return await call.services.checkout_settings.reorder(call.caller.business.id, call.body, by=by(call))


routes = [list_business_gateways, update_business_gateway, reorder_business_gateways]
