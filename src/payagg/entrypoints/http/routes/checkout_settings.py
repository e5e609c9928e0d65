"""A business's own view of the gateways."""

from typing import Any

from litestar import Request, Response, get, patch, post
from litestar.params import FromPath

from payagg.application.schemas.gateways import GatewayWithBusinessSettings, ReorderGateways, UpdateBusinessGateway
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.auth import manager, services
from payagg.entrypoints.http.wire import decoded, describe, envelope

TAG = "Merchant gateways"
BASE = "/merchant/businesses/{business_id:str}/gateways"


@get(
    BASE,
    opt=describe(
        "listBusinessGateways", "List the gateways of a business", TAG, returns=list[GatewayWithBusinessSettings]
    ),
)
async def listed(request: Request[Any, Any, Any], business_id: FromPath[str]) -> Response[bytes]:
    who = await manager(request, business_id, changes=False)
    return envelope(await services(request).checkout_settings.listed(who.business.id))


@patch(
    BASE + "/{gateway_id:str}",
    opt=describe(
        "updateBusinessGateway",
        "Change a gateway for a business",
        TAG,
        body=UpdateBusinessGateway,
        returns=GatewayWithBusinessSettings,
        errors=(ErrorCode.BUSINESS_RESTRICTED, ErrorCode.NOT_FOUND),
        description="The built-in gateway can be neither disabled nor reordered. Disabling clears the default flag.",
    ),
)
async def update(
    request: Request[Any, Any, Any], business_id: FromPath[str], gateway_id: FromPath[str]
) -> Response[bytes]:
    who = await manager(request, business_id, changes=True)
    command = await decoded(request, UpdateBusinessGateway)
    return envelope(await services(request).checkout_settings.update(who.business.id, gateway_id, command))


@post(
    BASE + "/reorder",
    status_code=200,
    opt=describe(
        "reorderBusinessGateways",
        "Reorder the gateways of a business",
        TAG,
        body=ReorderGateways,
        returns=list[GatewayWithBusinessSettings],
        errors=(ErrorCode.BUSINESS_RESTRICTED,),
        description="Every gateway must be active; the built-in one is ignored and stays first.",
    ),
)
async def reorder(request: Request[Any, Any, Any], business_id: FromPath[str]) -> Response[bytes]:
    who = await manager(request, business_id, changes=True)
    command = await decoded(request, ReorderGateways)
    return envelope(await services(request).checkout_settings.reorder(who.business.id, command))


routes = [listed, update, reorder]
