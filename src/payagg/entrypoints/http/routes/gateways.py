"""Gateways for administrators, and their public logos."""

from typing import Any

from litestar import Request, Response, delete, get, patch, post
from litestar.params import FromPath

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
from payagg.entrypoints.http.auth import admin, services
from payagg.entrypoints.http.uploads import uploaded
from payagg.entrypoints.http.wire import decoded, describe, done, envelope, page_envelope, page_query, text_query

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


@get(BASE, opt=describe("listGateways", "List the gateways", TAG, returns=list[AdminGatewaySummary]))
async def listed(request: Request[Any, Any, Any]) -> Response[bytes]:
    admin(request, reads=True)
    return envelope(await services(request).gateways.listed())


@post(
    BASE,
    opt=describe(
        "createGateway",
        "Create a gateway",
        TAG,
        body=CreateGateway,
        returns=AdminGatewaySummary,
        status=201,
        errors=(ErrorCode.GATEWAY_SLUG_EXISTS,),
        description="The new gateway is DISABLED.",
    ),
)
async def create(request: Request[Any, Any, Any]) -> Response[bytes]:
    admin(request, reads=False)
    command = await decoded(request, CreateGateway)
    return envelope(await services(request).gateways.create(command), 201)


@get(ONE, opt=describe("getGateway", "Read a gateway", TAG, returns=AdminGatewayDetail, errors=(ErrorCode.NOT_FOUND,)))
async def detail(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=True)
    return envelope(await services(request).gateways.detail(gateway_id))


@patch(
    ONE,
    opt=describe(
        "updateGateway",
        "Change a gateway",
        TAG,
        body=UpdateGateway,
        returns=AdminGatewaySummary,
        errors=(ErrorCode.NOT_FOUND,),
        description="For the built-in gateway only `displayOrder` may change.",
    ),
)
async def update(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=False)
    command = await decoded(request, UpdateGateway)
    return envelope(await services(request).gateways.update(gateway_id, command))


@delete(
    ONE,
    status_code=200,
    opt=describe(
        "deleteGateway",
        "Delete a gateway",
        TAG,
        returns=Message,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_IN_USE),
        description="Only a DISABLED gateway goes; its slug is free again.",
    ),
)
async def remove(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=False)
    return envelope(await services(request).gateways.delete(gateway_id))


@post(
    ONE + "/enable",
    status_code=200,
    opt=describe(
        "enableGateway",
        "Enable a gateway",
        TAG,
        returns=AdminGatewaySummary,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_ALREADY_ENABLED),
        description="For every active business at once; opt-outs stay. A drain that is under way ends.",
    ),
)
async def enable(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=False)
    return envelope(await services(request).gateways.enable(gateway_id))


@post(
    ONE + "/disable",
    status_code=200,
    opt=describe(
        "disableGateway",
        "Disable a gateway",
        TAG,
        returns=AdminGatewaySummary,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_NOT_ACTIVE),
        description="New checkouts stop at once; payments under way have the drain window to settle.",
    ),
)
async def disable(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=False)
    return envelope(await services(request).gateways.disable(gateway_id))


@get(
    ONE + "/merchants",
    opt=describe(
        "listGatewayMerchants",
        "List a gateway's merchants",
        TAG,
        returns=list[AdminGatewayMerchant],
        paginated=True,
        query={"search": {"type": "string", "maxLength": SEARCH_MAX}},
        errors=(ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND),
        description="Active businesses by name, those that never configured the gateway too.",
    ),
)
async def merchants(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=True)
    page, per_page = page_query(request)
    search = text_query(request, "search", SEARCH_MAX)
    found, total = await services(request).gateways.merchants(gateway_id, search, page, per_page)
    return page_envelope(found, page, per_page, total)


@patch(
    ONE + "/credentials",
    opt=describe(
        "updateGatewayCredentials",
        "Replace a gateway's credentials",
        TAG,
        body=UpdateCredentials,
        body_max=CREDENTIALS_BODY_MAX,
        errors=(ErrorCode.NOT_FOUND,),
        description="Replaces the previous object in full. Encrypted at rest and never returned.",
    ),
)
async def set_credentials(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=False)
    command = await decoded(request, UpdateCredentials)
    await services(request).gateways.set_credentials(gateway_id, command)
    return done()


@post(
    ONE + "/logo",
    opt=describe(
        "uploadGatewayLogo",
        "Upload a gateway's logo",
        TAG,
        body_max=LOGO_BODY_MAX,
        returns=UploadedLogo,
        status=201,
        errors=(ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND, ErrorCode.PAYLOAD_TOO_LARGE),
        upload="file",
        upload_max=LOGO_MAX_BYTES,
        description="PNG or JPEG of at most 2 MB and 4,096 pixels a side, told from its content.",
    ),
)
async def upload_logo(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    admin(request, reads=False)
    content = await uploaded(request, "file", LOGO_MAX_BYTES)
    return envelope(await services(request).gateways.upload_logo(gateway_id, content), 201)


@get(
    "/public/gateways/{gateway_id:str}/logo",
    opt=describe(
        "getGatewayLogo",
        "Read a gateway's logo",
        "Public",
        returns=bytes,
        media_types=("image/png", "image/jpeg"),
        errors=(ErrorCode.NOT_FOUND,),
        description="`image/png` or `image/jpeg`, as uploaded.",
    ),
)
async def public_logo(request: Request[Any, Any, Any], gateway_id: FromPath[str]) -> Response[bytes]:
    logo = await services(request).gateways.logo(gateway_id)
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
