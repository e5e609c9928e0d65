"""Gateways for administrators, and their public logos."""

from litestar import Response

from payagg.application.access import Administrator
from payagg.application.schemas.gateways import (
    SEARCH_MAX,
    AdminGatewayDetail,
    AdminGatewayMerchant,
    AdminGatewaySummary,
    CreateGateway,
    UpdateCredentials,
    UpdateGateway,
    UploadedLogo,
)
from payagg.application.schemas.payments import Message
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import LOGO_MAX_BYTES
from payagg.entrypoints.http.auth import admin_changes, admin_reads, anyone, by
from payagg.entrypoints.http.routing import Call, route
from payagg.entrypoints.http.wire import page_envelope, page_query, text_query

TAG = "Admin gateways"
BASE = "/admin/gateways"
ONE = BASE + "/{gateway_id:str}"
CREDENTIALS_BODY_MAX = 2_500_000  # fifty values of 4,000 characters, each at most twelve bytes as escaped JSON
# Far over the limit of a logo, so that a file that is too large is told so by name.
LOGO_BODY_MAX = 16 * 1024 * 1024
# `nosniff` is on every answer of the application.
LOGO_HEADERS = {
    "Cache-Control": "public, max-age=3600",
    # A file that someone uploaded is never more than a picture, wherever it is opened.
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@route("GET", BASE, "listGateways", "List the gateways", TAG, guard=admin_reads, returns=list[AdminGatewaySummary])
async def listed(call: Call[Administrator, None]) -> list[AdminGatewaySummary]:
    return await call.services.gateways.listed()


@route(
    "POST",
    BASE,
    "createGateway",
    "Create a gateway",
    TAG,
    guard=admin_changes,
    body=CreateGateway,
    returns=AdminGatewaySummary,
    status=201,
    errors=(ErrorCode.GATEWAY_SLUG_EXISTS,),
    description="The new gateway is DISABLED.",
)
async def create(call: Call[Administrator, CreateGateway]) -> AdminGatewaySummary:
    return await call.services.gateways.create(call.body, by=by(call))


@route(
    "GET",
    ONE,
    "getGateway",
    "Read a gateway",
    TAG,
    guard=admin_reads,
    returns=AdminGatewayDetail,
    errors=(ErrorCode.NOT_FOUND,),
)
async def detail(call: Call[Administrator, None]) -> AdminGatewayDetail:
    return await call.services.gateways.detail(call.path["gateway_id"])


@route(
    "PATCH",
    ONE,
    "updateGateway",
    "Change a gateway",
    TAG,
    guard=admin_changes,
    body=UpdateGateway,
    returns=AdminGatewaySummary,
    errors=(ErrorCode.NOT_FOUND,),
    description="For the built-in gateway only `displayOrder` may change.",
)
async def update(call: Call[Administrator, UpdateGateway]) -> AdminGatewaySummary:
    return await call.services.gateways.update(call.path["gateway_id"], call.body, by=by(call))


@route(
    "DELETE",
    ONE,
    "deleteGateway",
    "Delete a gateway",
    TAG,
    guard=admin_changes,
    returns=Message,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_IN_USE),
    description="Only a DISABLED gateway goes; its slug is free again.",
)
async def remove(call: Call[Administrator, None]) -> Message:
    return await call.services.gateways.delete(call.path["gateway_id"], by=by(call))


@route(
    "POST",
    ONE + "/enable",
    "enableGateway",
    "Enable a gateway",
    TAG,
    guard=admin_changes,
    returns=AdminGatewaySummary,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_ALREADY_ENABLED),
    description="For every active business at once; opt-outs stay. A drain that is under way ends.",
)
async def enable(call: Call[Administrator, None]) -> AdminGatewaySummary:
    return await call.services.gateways.enable(call.path["gateway_id"], by=by(call))


@route(
    "POST",
    ONE + "/disable",
    "disableGateway",
    "Disable a gateway",
    TAG,
    guard=admin_changes,
    returns=AdminGatewaySummary,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_NOT_ACTIVE),
    description="New checkouts stop at once; payments under way have the drain window to settle.",
)
async def disable(call: Call[Administrator, None]) -> AdminGatewaySummary:
    return await call.services.gateways.disable(call.path["gateway_id"], by=by(call))


@route(
    "GET",
    ONE + "/merchants",
    "listGatewayMerchants",
    "List a gateway's merchants",
    TAG,
    guard=admin_reads,
    returns=list[AdminGatewayMerchant],
    paginated=True,
    query={"search": {"type": "string", "maxLength": SEARCH_MAX}},
    errors=(ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND),
    description="Active businesses by name, those that never configured the gateway too.",
)
async def merchants(call: Call[Administrator, None]) -> Response[bytes]:
    page, per_page = page_query(call.request)
    search = text_query(call.request, "search", SEARCH_MAX)
    found, total = await call.services.gateways.merchants(call.path["gateway_id"], search, page, per_page)
    return page_envelope(found, page, per_page, total)


@route(
    "PATCH",
    ONE + "/credentials",
    "updateGatewayCredentials",
    "Replace a gateway's credentials",
    TAG,
    guard=admin_changes,
    body=UpdateCredentials,
    body_max=CREDENTIALS_BODY_MAX,
    errors=(ErrorCode.NOT_FOUND,),
    description="Replaces the previous object in full. Encrypted at rest and never returned.",
)
async def set_credentials(call: Call[Administrator, UpdateCredentials]) -> None:
    await call.services.gateways.set_credentials(call.path["gateway_id"], call.body, by=by(call))


@route(
    "POST",
    ONE + "/logo",
    "uploadGatewayLogo",
    "Upload a gateway's logo",
    TAG,
    guard=admin_changes,
    body_max=LOGO_BODY_MAX,
    returns=UploadedLogo,
    status=201,
    errors=(ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND, ErrorCode.PAYLOAD_TOO_LARGE),
    upload="file",
    upload_max=LOGO_MAX_BYTES,
    description="PNG or JPEG of at most 2 MB and 4,096 pixels a side, told from its content.",
)
async def upload_logo(call: Call[Administrator, bytes]) -> UploadedLogo:
    return await call.services.gateways.upload_logo(call.path["gateway_id"], call.body, by=by(call))


@route(
    "GET",
    "/public/gateways/{gateway_id:str}/logo",
    "getGatewayLogo",
    "Read a gateway's logo",
    "Public",
    guard=anyone,
    returns=bytes,
    media_types=("image/png", "image/jpeg"),
    errors=(ErrorCode.NOT_FOUND,),
    description="`image/png` or `image/jpeg`, as uploaded.",
)
async def public_logo(call: Call[None, None]) -> Response[bytes]:
    logo = await call.services.gateways.logo(call.path["gateway_id"])
    return Response(logo.content, media_type=logo.media_type, headers=LOGO_HEADERS)


routes = [
    listed,
    create,
    detail,
    update,
    remove,
    enable,
    disable,
    merchants,
    set_credentials,
    upload_logo,
    public_logo,
]
