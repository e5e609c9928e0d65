"""The administrator's part of the story: a business, and gateways that work."""

from payagg.application.gateways.seed import seed_gateways
from payagg.entrypoints.http.server.routing import KB
from tests.support.answers.storyteller import Storyteller
from tests.support.http_world import admin_token, bearer
from tests.support.images import an_image
from tests.support.provider_rigs import credentials_a, credentials_b

SHOWN_CREDENTIALS = {"sandboxSecretKey": "sk_test_...", "liveSecretKey": "sk_live_..."}


async def administer(told: Storyteller) -> None:
    """Afterwards there is a business, and both providers are active."""
    await seed_gateways(told.services.gateways, "builtin", ("provider_a", "provider_b"))
    await _businesses(told)
    await _gateways(told)


async def _businesses(told: Storyteller) -> None:
    made = await told.call("createBusiness", json={"name": "Ada's Shop", "owner": "owner-1"})
    told.business = made["id"]
    for kyc in ("PENDING", "UNDER_REVIEW"):
        await told.call("updateBusiness", json={"kycStatus": kyc})
    await told.call("setBusinessMember", json={"subject": "ops-1", "role": "ADMIN"})
    await told.call("listBusinessMembers")
    await told.call("getBusiness")
    await told.call("removeBusinessMember", json={"subject": "ops-1"})
    await told.refused("LAST_OWNER", "removeBusinessMember", json={"subject": "owner-1"})
    await told.call("listBusinesses")
    await told.refused("UNAUTHORIZED", "listBusinesses", headers={})
    support = bearer(admin_token("SUPPORT"))
    await told.refused("FORBIDDEN", "updateBusiness", json={"kycStatus": "APPROVED"}, headers=support)
    await told.refused("NOT_FOUND", "getBusiness", "biz_unknown")
    await told.refused("PAYLOAD_TOO_LARGE", "createBusiness", json={"name": "a" * 8 * KB})
    await told.refused("METHOD_NOT_ALLOWED", "PUT /admin/businesses")


async def _gateways(told: Storyteller) -> None:
    every = {one["slug"]: one["id"] for one in await told.call("listGateways")}
    body = {"slug": "bank-transfer", "name": "Bank transfer", "description": "Pay from your bank", "displayOrder": 4}
    transfer = (await told.call("createGateway", json=body))["id"]
    await told.refused("GATEWAY_SLUG_EXISTS", "createGateway", json=body)
    await told.call("updateGateway", transfer, json={"name": "Transfer", "displayOrder": 3})
    await told.refused("GATEWAY_NOT_ACTIVE", "disableGateway", transfer)
    await told.call("enableGateway", transfer)
    await told.refused("GATEWAY_ALREADY_ENABLED", "enableGateway", transfer)
    await told.refused("GATEWAY_IN_USE", "deleteGateway", transfer)
    await told.call("disableGateway", transfer)
    await told.passes(minutes=31)
    await told.refused("GATEWAY_BUILT_IN", "disableGateway", every["builtin"])
    await told.refused("PROVIDER_NOT_CONFIGURED", "receiveProviderAEvent", content=b"{}")
    for slug, credentials in (("provider_a", credentials_a(told.fakes)), ("provider_b", credentials_b(told.fakes))):
        await told.call("updateGatewayCredentials", every[slug], json={"credentials": credentials})
        await told.call("enableGateway", every[slug])
    told.operations["updateGatewayCredentials"]["request"] = {"credentials": SHOWN_CREDENTIALS}
    provider_a = every["provider_a"]
    await told.call("testGatewayCredentials", provider_a, json={"environment": "SANDBOX"})
    await told.call("endCredentialsOverlap", provider_a)
    await told.call("uploadGatewayLogo", provider_a, files={"file": ("logo.png", an_image(), "image/png")})
    await told.call("getGatewayLogo", provider_a)
    await told.call("deleteGateway", transfer)
