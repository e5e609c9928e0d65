"""Gateways for administrators, and their public logos."""

import re

from litestar import Response

from payagg.application.accounts.access import Administrator
from payagg.application.gateways.readiness import GatewayReadiness, gateway_readiness, try_credentials
from payagg.application.schemas.gateways import (
    SEARCH_MAX,
    AdminGatewayDetail,
    AdminGatewayMerchant,
    AdminGatewaySummary,
    CreateGateway,
    CredentialsTest,
    EndedOverlap,
    TestCredentials,
    UpdateCredentials,
    UpdateGateway,
    UploadedLogo,
)
from payagg.application.schemas.payments import Message
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import LOGO_MAX_BYTES
from payagg.entrypoints.http.api.auth import admin_reads, anyone, by, gateway_changes
from payagg.entrypoints.http.server.routing import KB, Call, route
from payagg.entrypoints.http.server.wire import empty_envelope, page_envelope, page_query, text_query

TAG = "Admin gateways"
BASE = "/admin/gateways"
ONE = BASE + "/{gateway_id:str}"
CREDENTIALS_BODY_MAX = 2_500_000  # fifty values of 4,000 characters, each at most twelve bytes as escaped JSON
HEADER_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")  # a credential's name that a header can carry
# Far over a logo's limit, so a file that is too large gets a refusal that names the field.
LOGO_BODY_MAX = 16 * 1024 * 1024
# `nosniff` is on every answer of the application.
LOGO_HEADERS = {
    "Cache-Control": "public, max-age=3600",
    # An uploaded file must never act as more than a picture.
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@route("GET", BASE, "listGateways", "List the gateways", TAG, guard=admin_reads)
async def list_gateways(call: Call[Administrator, None]) -> list[AdminGatewaySummary]:
    return await call.services.gateways.list_gateways()


@route(
    "POST",
    BASE,
    "createGateway",
    "Create a gateway",
    TAG,
    guard=gateway_changes,
    body_max=16 * KB,
    status=201,
    errors=(ErrorCode.GATEWAY_SLUG_EXISTS,),
    description="The new gateway is DISABLED.",
)
async def create_gateway(call: Call[Administrator, CreateGateway]) -> AdminGatewaySummary:
    return await call.services.gateways.create(call.body, by=by(call))


@route("GET", ONE, "getGateway", "Read a gateway", TAG, guard=admin_reads, errors=(ErrorCode.NOT_FOUND,))
async def get_gateway(call: Call[Administrator, None]) -> AdminGatewayDetail:
    return await call.services.gateways.detail(call.path["gateway_id"])


@route(
    "PATCH",
    ONE,
    "updateGateway",
    "Change a gateway",
    TAG,
    guard=gateway_changes,
    body_max=16 * KB,
    errors=(ErrorCode.NOT_FOUND,),
    description="For the built-in gateway only `displayOrder` may change.",
)
async def update_gateway(call: Call[Administrator, UpdateGateway]) -> AdminGatewaySummary:
    return await call.services.gateways.update(call.path["gateway_id"], call.body, by=by(call))


@route(
    "DELETE",
    ONE,
    "deleteGateway",
    "Delete a gateway",
    TAG,
    guard=gateway_changes,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_IN_USE),
    description="Only a DISABLED gateway can be deleted; its slug is then free. Payments that it took still settle, "
    "for at most 72 hours; then its credentials are removed.",
)
async def delete_gateway(call: Call[Administrator, None]) -> Message:
    return await call.services.gateways.delete(call.path["gateway_id"], by=by(call))


@route(
    "POST",
    ONE + "/enable",
    "enableGateway",
    "Enable a gateway",
    TAG,
    guard=gateway_changes,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_ALREADY_ENABLED),
    description="It is on for every active business at once, except for those that opted out. A running drain ends.",
)
async def enable_gateway(call: Call[Administrator, None]) -> AdminGatewaySummary:
    return await call.services.gateways.enable(call.path["gateway_id"], by=by(call))


@route(
    "POST",
    ONE + "/disable",
    "disableGateway",
    "Disable a gateway",
    TAG,
    guard=gateway_changes,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_NOT_ACTIVE),
    description="New checkouts stop at once; payments in progress may settle during the drain.",
)
async def disable_gateway(call: Call[Administrator, None]) -> AdminGatewaySummary:
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
    errors=(ErrorCode.NOT_FOUND,),
    description="Active businesses by name, also those that never configured the gateway.",
)
async def list_gateway_merchants(call: Call[Administrator, None]) -> Response[bytes]:
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
    guard=gateway_changes,
    body_max=CREDENTIALS_BODY_MAX,
    errors=(ErrorCode.NOT_FOUND,),
    headers=("Credentials-Removed", "Open-Attempts"),
    description="Replaces the previous object: a name that you do not send again is removed, and the header "
    "`Credentials-Removed` lists it. With `keepOthers` only the names that you send change, and an empty value "
    "removes a name. A name has at most 100 characters. Encrypted at rest and never returned. A replaced or removed "
    "signing secret still proves events for 24 hours. If the provider account or its address changes, "
    "`Open-Attempts` says how many attempts of the old account are still being checked: the new account's answers do "
    "not end them.",
)
async def update_gateway_credentials(call: Call[Administrator, UpdateCredentials]) -> Response[bytes]:
    replaced = await call.services.gateways.set_credentials(call.path["gateway_id"], call.body, by=by(call))
    shown = ", ".join(name for name in replaced.removed if HEADER_NAME.fullmatch(name))
    headers = {"Credentials-Removed": shown} if shown else {}
    return empty_envelope(headers | ({"Open-Attempts": str(replaced.open_attempts)} if replaced.open_attempts else {}))


@route(
    "POST",
    ONE + "/credentials/test",
    "testGatewayCredentials",
    "Ask the provider whether it accepts the stored credentials",
    TAG,
    guard=gateway_changes,
    body_max=KB,
    errors=(ErrorCode.NOT_FOUND, ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, ErrorCode.RATE_LIMITED),
    description="It asks about a reference that nobody paid, so it charges nobody. At most 10 a minute for a gateway "
    "and environment.",
)
async def test_gateway_credentials(call: Call[Administrator, TestCredentials]) -> CredentialsTest:
    own = call.services
    gateway_id, environment = call.path["gateway_id"], call.body.environment
    return await try_credentials(own.payment_options, own.gateways.entropy, gateway_id, environment, by=by(call))


@route(
    "POST",
    ONE + "/credentials/end-overlap",
    "endCredentialsOverlap",
    "End the overlap of replaced signing secrets",
    TAG,
    guard=gateway_changes,
    errors=(ErrorCode.NOT_FOUND,),
    description="From now on only the stored signing secrets prove a provider's events. Safe to repeat.",
)
async def end_credentials_overlap(call: Call[Administrator, None]) -> EndedOverlap:
    return await call.services.gateways.end_overlap(call.path["gateway_id"], by=by(call))


@route(
    "POST",
    ONE + "/logo",
    "uploadGatewayLogo",
    "Upload a gateway's logo",
    TAG,
    guard=gateway_changes,
    body_max=LOGO_BODY_MAX,
    status=201,
    errors=(ErrorCode.NOT_FOUND,),
    upload="file",
    upload_max=LOGO_MAX_BYTES,
    description="PNG or JPEG of at most 2 MB and 4,096 pixels a side; the content decides the type.",
)
async def upload_gateway_logo(call: Call[Administrator, bytes]) -> UploadedLogo:
    return await call.services.gateways.upload_logo(call.path["gateway_id"], call.body, by=by(call))


@route(
    "GET",
    ONE + "/readiness",
    "getGatewayReadiness",
    "Show what a gateway lacks to take payments",
    TAG,
    guard=admin_reads,
    errors=(ErrorCode.NOT_FOUND,),
    description="Whether it has a processor, its set-up and health by environment, and how many attempts are open.",
)
async def get_gateway_readiness(call: Call[Administrator, None]) -> GatewayReadiness:
    own, options = call.services, call.services.payment_options
    return await gateway_readiness(own.store, own.clock, own.vault, options.providers, call.path["gateway_id"])


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
async def get_gateway_logo(call: Call[None, None]) -> Response[bytes]:
    logo = await call.services.gateways.logo(call.path["gateway_id"])
    return Response(logo.content, media_type=logo.media_type, headers=LOGO_HEADERS)


routes = [
    list_gateways,
    create_gateway,
    get_gateway,
    update_gateway,
    delete_gateway,
    enable_gateway,
    disable_gateway,
    list_gateway_merchants,
    update_gateway_credentials,
    test_gateway_credentials,
    end_credentials_overlap,
    upload_gateway_logo,
    get_gateway_readiness,
    get_gateway_logo,
]
