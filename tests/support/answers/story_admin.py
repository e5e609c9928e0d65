"""The administrator's part of the story: a business, and gateways that work."""

from typing import TYPE_CHECKING

from payagg.entrypoints.http.server.routing import KB
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
    body = {"name": NAME, "owner": "owner-1"}
    made = await told.call("createBusiness", "/admin/businesses", json=body)
    one = f"/admin/businesses/{made['id']}"
    for kyc in ("PENDING", "UNDER_REVIEW"):
        await told.call("updateBusiness", one, json={"kycStatus": kyc})
    member = {"subject": "ops-1", "role": "ADMIN"}
    await told.call("setBusinessMember", f"{one}/members", json=member)
    await told.call("listBusinessMembers", f"{one}/members")
    await told.call("getBusiness", one)
    remove = f"{one}/members/remove"
    await told.call("removeBusinessMember", remove, json={"subject": "ops-1"})
    await told.refused("LAST_OWNER", "POST", remove, json={"subject": "owner-1"})
    await told.call("listBusinesses", "/admin/businesses")
    support = bearer(admin_token("SUPPORT"))
    await told.refused("UNAUTHORIZED", "GET", "/admin/businesses", headers={})
    await told.refused("FORBIDDEN", "PATCH", one, json={"kycStatus": "APPROVED"}, headers=support)
    await told.refused("NOT_FOUND", "GET", "/admin/businesses/biz_unknown")
    await told.refused("PAYLOAD_TOO_LARGE", "POST", "/admin/businesses", json={"name": "a" * 8 * KB})
    await told.refused("METHOD_NOT_ALLOWED", "PUT", "/admin/businesses")
    return str(made["id"])


async def _gateways(told: "Storyteller") -> None:
    every = {one["slug"]: one["id"] for one in await told.call("listGateways", "/admin/gateways")}
    body = {"slug": "bank-transfer", "name": "Bank transfer", "description": "Pay from your bank", "displayOrder": 4}
    made = await told.call("createGateway", "/admin/gateways", json=body)
    await told.refused("GATEWAY_SLUG_EXISTS", "POST", "/admin/gateways", json=body)
    one = f"/admin/gateways/{made['id']}"
    await told.call("updateGateway", one, json={"name": "Transfer", "displayOrder": 3})
    await told.refused("GATEWAY_NOT_ACTIVE", "POST", f"{one}/disable")
    await told.call("enableGateway", f"{one}/enable")
    await told.refused("GATEWAY_ALREADY_ENABLED", "POST", f"{one}/enable")
    await told.refused("GATEWAY_IN_USE", "DELETE", one)
    await told.call("disableGateway", f"{one}/disable")
    await told.passes(minutes=31)
    await told.refused("GATEWAY_BUILT_IN", "POST", f"/admin/gateways/{every['builtin']}/disable")
    await told.refused("PROVIDER_NOT_CONFIGURED", "POST", "/webhooks/provider_a", content=b"{}")
    for slug, credentials in (("provider_a", credentials_a(told.fakes)), ("provider_b", credentials_b(told.fakes))):
        own = f"/admin/gateways/{every[slug]}"
        body = {"credentials": credentials}
        await told.call("updateGatewayCredentials", f"{own}/credentials", json=body)
        await told.call("enableGateway", f"{own}/enable")
    told.operations["updateGatewayCredentials"]["request"] = {"credentials": SHOWN_CREDENTIALS}
    own = f"/admin/gateways/{every['provider_a']}"
    await told.call("testGatewayCredentials", f"{own}/credentials/test", json={"environment": "SANDBOX"})
    await told.call("endCredentialsOverlap", f"{own}/credentials/end-overlap")
    file = {"file": ("logo.png", an_image(), "image/png")}
    await told.call("uploadGatewayLogo", f"{own}/logo", files=file)
    await told.call("getGatewayLogo", f"/public/gateways/{every['provider_a']}/logo")
    await told.call("deleteGateway", one)
