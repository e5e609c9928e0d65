"""Gateways for administrators, and their public logos."""

import re

from litestar import Response

from payagg.application.accounts.access import Administrator, Manager
from payagg.application.gateways.readiness import GatewayReadiness, gateway_readiness, try_credentials
from payagg.application.schemas.gateways import (
    SEARCH_MAX,
    AdminGatewayDetail,
    AdminGatewayMerchant,
    AdminGatewaySummary,
    CreateGateway,
    CredentialsTest,
    EndedOverlap,
    GatewayWithBusinessSettings,
    ReorderGateways,
    TestCredentials,
    UpdateBusinessGateway,
    UpdateCredentials,
    UpdateGateway,
    UploadedLogo,
)
from payagg.application.schemas.payments import Message
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import LOGO_MAX_BYTES
from payagg.entrypoints.http.api.auth import admin_reads, anyone, by, gateway_changes, manager_changes, manager_reads
from payagg.entrypoints.http.server.routing import KB, Call, Routes
from payagg.entrypoints.http.server.wire import empty_envelope, page_envelope, page_query, text_query

routes = Routes("Admin gateways")
of_merchants = Routes("Merchant gateways")
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


@routes.add("GET", BASE, guard=admin_reads)
async def list_gateways(call: Call[Administrator, None]) -> list[AdminGatewaySummary]:
    """List the gateways."""
    return await call.services.gateways.list_gateways()


@routes.add("POST", BASE, guard=gateway_changes, body_max=16 * KB, status=201, errors=(ErrorCode.GATEWAY_SLUG_EXISTS,))
async def create_gateway(call: Call[Administrator, CreateGateway]) -> AdminGatewaySummary:
    """Create a gateway. The new gateway is DISABLED."""
    return await call.services.gateways.create(call.body, by=by(call))


@routes.add("GET", ONE, guard=admin_reads)
async def get_gateway(call: Call[Administrator, None]) -> AdminGatewayDetail:
    """Read a gateway."""
    return await call.services.gateways.detail(call.path["gateway_id"])


@routes.add("PATCH", ONE, guard=gateway_changes, body_max=16 * KB)
async def update_gateway(call: Call[Administrator, UpdateGateway]) -> AdminGatewaySummary:
    """Change a gateway. For the built-in gateway only `displayOrder` may change."""
    return await call.services.gateways.update(call.path["gateway_id"], call.body, by=by(call))


@routes.add("DELETE", ONE, guard=gateway_changes, errors=(ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_IN_USE))
async def delete_gateway(call: Call[Administrator, None]) -> Message:
    """Delete a gateway. Only a DISABLED gateway can be deleted; its slug is then free. Payments that it took still
    settle, for at most 72 hours; then its credentials are removed."""
    return await call.services.gateways.delete(call.path["gateway_id"], by=by(call))


@routes.add("POST", ONE + "/enable", guard=gateway_changes, errors=(ErrorCode.GATEWAY_ALREADY_ENABLED,))
async def enable_gateway(call: Call[Administrator, None]) -> AdminGatewaySummary:
    """Enable a gateway. It is on for every active business at once, except for those that opted out. A running drain
    ends."""
    return await call.services.gateways.enable(call.path["gateway_id"], by=by(call))


@routes.add(
    "POST", ONE + "/disable", guard=gateway_changes, errors=(ErrorCode.GATEWAY_BUILT_IN, ErrorCode.GATEWAY_NOT_ACTIVE)
)
async def disable_gateway(call: Call[Administrator, None]) -> AdminGatewaySummary:
    """Disable a gateway. New checkouts stop at once; payments in progress may settle during the drain."""
    return await call.services.gateways.disable(call.path["gateway_id"], by=by(call))


@routes.add(
    "GET",
    ONE + "/merchants",
    guard=admin_reads,
    returns=list[AdminGatewayMerchant],
    paginated=True,
    query={"search": {"type": "string", "maxLength": SEARCH_MAX}},
)
async def list_gateway_merchants(call: Call[Administrator, None]) -> Response[bytes]:
    """List a gateway's merchants. Active businesses by name, also those that never configured the gateway."""
    page, per_page = page_query(call.request)
    search = text_query(call.request, "search", SEARCH_MAX)
    found, total = await call.services.gateways.merchants(call.path["gateway_id"], search, page, per_page)
    return page_envelope(found, page, per_page, total)


@routes.add(
    "PATCH",
    ONE + "/credentials",
    guard=gateway_changes,
    body_max=CREDENTIALS_BODY_MAX,
    headers=("Credentials-Removed", "Open-Attempts"),
)
async def update_gateway_credentials(call: Call[Administrator, UpdateCredentials]) -> Response[bytes]:
    """Replace a gateway's credentials. Replaces the previous object: a name that you do not send again is removed, and
    the header `Credentials-Removed` lists it. With `keepOthers` only the names that you send change, and an empty value
    removes a name. A name has at most 100 characters. Encrypted at rest and never returned. A replaced or removed
    signing secret still proves events for 24 hours. If the provider account or its address changes, `Open-Attempts`
    says how many attempts of the old account are still being checked: the new account's answers do not end them."""
    replaced = await call.services.gateways.set_credentials(call.path["gateway_id"], call.body, by=by(call))
    shown = ", ".join(name for name in replaced.removed if HEADER_NAME.fullmatch(name))
    headers = {"Credentials-Removed": shown} if shown else {}
    return empty_envelope(headers | ({"Open-Attempts": str(replaced.open_attempts)} if replaced.open_attempts else {}))


@routes.add(
    "POST",
    ONE + "/credentials/test",
    guard=gateway_changes,
    body_max=KB,
    errors=(ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED, ErrorCode.RATE_LIMITED),
)
async def test_gateway_credentials(call: Call[Administrator, TestCredentials]) -> CredentialsTest:
    """Ask the provider whether it accepts the stored credentials. It asks about a reference that nobody paid, so it
    charges nobody. At most 10 a minute for a gateway and environment."""
    own = call.services
    gateway_id, environment = call.path["gateway_id"], call.body.environment
    return await try_credentials(own.payment_options, own.entropy, gateway_id, environment, by=by(call))


@routes.add("POST", ONE + "/credentials/end-overlap", guard=gateway_changes)
async def end_credentials_overlap(call: Call[Administrator, None]) -> EndedOverlap:
    """End the overlap of replaced signing secrets. From now on only the stored signing secrets prove a provider's
    events. Safe to repeat."""
    return await call.services.gateways.end_overlap(call.path["gateway_id"], by=by(call))


@routes.add(
    "POST",
    ONE + "/logo",
    guard=gateway_changes,
    body_max=LOGO_BODY_MAX,
    status=201,
    upload="file",
    upload_max=LOGO_MAX_BYTES,
)
async def upload_gateway_logo(call: Call[Administrator, bytes]) -> UploadedLogo:
    """Upload a gateway's logo. PNG or JPEG of at most 2 MB and 4,096 pixels a side; the content decides the type."""
    return await call.services.gateways.upload_logo(call.path["gateway_id"], call.body, by=by(call))


@routes.add("GET", ONE + "/readiness", guard=admin_reads)
async def get_gateway_readiness(call: Call[Administrator, None]) -> GatewayReadiness:
    """Show what a gateway lacks to take payments. Whether it has a provider, its set-up and health by environment, and
    how many attempts are open."""
    return await gateway_readiness(call.services.payment_options, call.path["gateway_id"])


@routes.add(
    "GET",
    "/public/gateways/{gateway_id:str}/logo",
    tag="Public",
    guard=anyone,
    returns=bytes,
    media_types=("image/png", "image/jpeg"),
)
async def get_gateway_logo(call: Call[None, None]) -> Response[bytes]:
    """Read a gateway's logo. `image/png` or `image/jpeg`, as uploaded."""
    logo = await call.services.gateways.logo(call.path["gateway_id"])
    return Response(logo.content, media_type=logo.media_type, headers=LOGO_HEADERS)


OWN = "/merchant/businesses/{business_id:str}/gateways"


@of_merchants.add("GET", OWN, guard=manager_reads)
async def list_business_gateways(call: Call[Manager, None]) -> list[GatewayWithBusinessSettings]:
    """List the gateways of a business."""
    return await call.services.checkout_settings.list_gateways(call.caller.business.id)


@of_merchants.add("PATCH", OWN + "/{gateway_id:str}", guard=manager_changes, body_max=2 * KB)
async def update_business_gateway(call: Call[Manager, UpdateBusinessGateway]) -> GatewayWithBusinessSettings:
    """Change a gateway for a business. The built-in gateway can be neither disabled nor reordered. Disabling clears the
    default flag."""
    business_id, gateway_id = call.caller.business.id, call.path["gateway_id"]
    return await call.services.checkout_settings.update(business_id, gateway_id, call.body, by=by(call))


@of_merchants.add("POST", OWN + "/reorder", guard=manager_changes, body_max=32 * KB)
async def reorder_business_gateways(call: Call[Manager, ReorderGateways]) -> list[GatewayWithBusinessSettings]:
    """Reorder the gateways of a business. Every gateway must be active; the built-in one is ignored and stays first."""
    return await call.services.checkout_settings.reorder(call.caller.business.id, call.body, by=by(call))
