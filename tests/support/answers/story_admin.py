"""The administrator's part of the story: a business, and gateways that work."""

from typing import TYPE_CHECKING, Any

from payagg.entrypoints.http.routing import KB
from tests.support.http_world import admin_token, bearer
from tests.support.images import an_image
from tests.support.provider_rigs import credentials_a, credentials_b

if TYPE_CHECKING:
    from tests.support.answers.story import Storyteller

NAME = "Ada's Shop"
SHOWN_CREDENTIALS = {"sandboxSecretKey": "sk_test_...", "liveSecretKey": "sk_live_..."}


async def administer(told: "Storyteller") -> str:
    """The id of an approved business; both providers are active."""
    await told.services.gateways.seed("builtin", ("provider_a", "provider_b"))
    business = await _businesses(told)
    await _gateways(told)
    return business


async def _businesses(told: "Storyteller") -> str:
    as_admin: dict[str, Any] = {"headers": told.admin}
    body = {"name": NAME, "owner": "owner-1"}
    made = await told.call("createBusiness", "POST", "/admin/businesses", 201, json=body, **as_admin)
    one = f"/admin/businesses/{made['id']}"
    for kyc in ("PENDING", "UNDER_REVIEW"):
        await told.call("updateBusiness", "PATCH", one, json={"kycStatus": kyc}, **as_admin)
    member = {"subject": "ops-1", "role": "ADMIN"}
    await told.call("setBusinessMember", "POST", f"{one}/members", json=member, **as_admin)
    await told.call("listBusinessMembers", "GET", f"{one}/members", **as_admin)
    await told.call("getBusiness", "GET", one, **as_admin)
    remove = f"{one}/members/remove"
    await told.call("removeBusinessMember", "POST", remove, json={"subject": "ops-1"}, **as_admin)
    await told.refused("LAST_OWNER", "POST", remove, json={"subject": "owner-1"}, **as_admin)
    await told.call("listBusinesses", "GET", "/admin/businesses", **as_admin)
    support = bearer(admin_token("SUPPORT"))
    await told.refused("UNAUTHORIZED", "GET", "/admin/businesses")
    await told.refused("FORBIDDEN", "PATCH", one, json={"kycStatus": "APPROVED"}, headers=support)
    await told.refused("NOT_FOUND", "GET", "/admin/businesses/biz_unknown", **as_admin)
    await told.refused("PAYLOAD_TOO_LARGE", "POST", "/admin/businesses", json={"name": "a" * 8 * KB}, **as_admin)
    await told.refused("METHOD_NOT_ALLOWED", "PUT", "/admin/businesses", **as_admin)
    return str(made["id"])


async def _gateways(told: "Storyteller") -> None:
    as_admin: dict[str, Any] = {"headers": told.admin}
    every = {one["slug"]: one["id"] for one in await told.call("listGateways", "GET", "/admin/gateways", **as_admin)}
    body = {"slug": "bank-transfer", "name": "Bank transfer", "description": "Pay from your bank", "displayOrder": 4}
    made = await told.call("createGateway", "POST", "/admin/gateways", 201, json=body, **as_admin)
    await told.refused("GATEWAY_SLUG_EXISTS", "POST", "/admin/gateways", json=body, **as_admin)
    one = f"/admin/gateways/{made['id']}"
    await told.call("updateGateway", "PATCH", one, json={"name": "Transfer", "displayOrder": 3}, **as_admin)
    await told.refused("GATEWAY_NOT_ACTIVE", "POST", f"{one}/disable", **as_admin)
    await told.call("enableGateway", "POST", f"{one}/enable", **as_admin)
    await told.refused("GATEWAY_ALREADY_ENABLED", "POST", f"{one}/enable", **as_admin)
    await told.refused("GATEWAY_IN_USE", "DELETE", one, **as_admin)
    await told.call("disableGateway", "POST", f"{one}/disable", **as_admin)
    await told.passes(minutes=31)
    await told.refused("GATEWAY_BUILT_IN", "POST", f"/admin/gateways/{every['builtin']}/disable", **as_admin)
    await told.refused("PROVIDER_NOT_CONFIGURED", "POST", "/webhooks/provider_a", content=b"{}")
    for slug, credentials in (("provider_a", credentials_a(told.fakes)), ("provider_b", credentials_b(told.fakes))):
        own = f"/admin/gateways/{every[slug]}"
        body = {"credentials": credentials}
        await told.call("updateGatewayCredentials", "PATCH", f"{own}/credentials", json=body, **as_admin)
        await told.call("enableGateway", "POST", f"{own}/enable", **as_admin)
    told.operations["updateGatewayCredentials"]["request"] = {"credentials": SHOWN_CREDENTIALS}
    own = f"/admin/gateways/{every['provider_a']}"
    await told.call("endCredentialsOverlap", "POST", f"{own}/credentials/end-overlap", **as_admin)
    file = {"file": ("logo.png", an_image(), "image/png")}
    await told.call("uploadGatewayLogo", "POST", f"{own}/logo", 201, files=file, **as_admin)
    await told.call("getGatewayLogo", "GET", f"/public/gateways/{every['provider_a']}/logo")
    await told.call("deleteGateway", "DELETE", one, **as_admin)
