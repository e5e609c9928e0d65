"""The dashboards' part of the story: an administrator makes a business and gateways that work, its merchant keys,
webhook endpoints and checkout settings; later come lists, logs and the audit."""

from payagg.application.gateways.seed import seed_gateways
from payagg.domain.anomaly import NOTES_MAX
from payagg.domain.audit import Actor, ActorRealm
from payagg.domain.values import Environment
from payagg.entrypoints.http.server.routing import KB
from tests.support.answers.storyteller import BETWEEN_CALLS, Storyteller
from tests.support.assembly import named
from tests.support.http_world import admin_token, bearer, merchant_token
from tests.support.images import an_image
from tests.support.provider_rigs import credentials_a, credentials_b

HOOK = {"url": "https://shop.example/hooks", "environment": "SANDBOX", "description": "Order service", "events": []}
SANDBOX = {"environment": "SANDBOX"}
SHOWN_CREDENTIALS = {"sandboxSecretKey": "sk_test_...", "liveSecretKey": "sk_live_..."}


async def administer(told: Storyteller) -> None:
    """Afterwards there is a business, and both providers are active."""
    await seed_gateways(told.services.gateways, "builtin", named("provider_a", "provider_b"))
    await _businesses(told)
    await _gateways(told)


async def _businesses(told: Storyteller) -> None:
    made = await told.call("createBusiness", json={"name": "Ada's Shop", "owner": "owner-1"})
    told.business = made["id"]
    for kyc in ("PENDING", "UNDER_REVIEW"):
        await told.call("updateBusiness", json={"kycStatus": kyc})
    await told.call("setBusinessMember", json={"subject": "ops-1", "role": "ADMIN"})
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


async def manage(told: Storyteller) -> None:
    unverified = bearer(merchant_token("owner-1", verified=False))
    await told.refused("EMAIL_NOT_VERIFIED", "listApiKeys", headers=unverified)
    await told.refused("NO_SANDBOX_KEY", "createTestPayment", json={"amount": 150000})
    await told.refused("KYC_REQUIRED", "generateApiKey", json={"environment": "LIVE", "name": "Server"})
    await told.call("updateBusiness", json={"kycStatus": "APPROVED"})
    keys = [
        await told.call("generateApiKey", json={"environment": environment, "name": "Server"})
        for environment in ("SANDBOX", "LIVE")
    ]
    for number in range(2, 6):
        wish = {**SANDBOX, "name": f"Spare {number}"}
        spare = await told.call("generateApiKey", json=wish)
    await told.refused("KEY_LIMIT_REACHED", "generateApiKey", json=wish)
    await told.call("revokeApiKey", spare["id"])
    await told.refused("API_KEY_ALREADY_REVOKED", "revokeApiKey", spare["id"])
    await told.call("listApiKeys")
    await _endpoints(told)
    await _settings(told)
    told.server, told.live = (bearer(key["secretKey"]) for key in keys)


async def _endpoints(told: Storyteller) -> None:
    told.endpoint = one = (await told.call("createWebhook", json=HOOK))["id"]
    for number in range(2, 6):
        spare = {**HOOK, "environment": "LIVE", "description": f"Spare {number}"}
        last = await told.call("createWebhook", json=spare)
    await told.refused("WEBHOOK_LIMIT_REACHED", "createWebhook", json=HOOK)
    await told.call("deactivateWebhook", last["id"])
    await told.call("updateWebhook", one, json={"description": "Orders"})
    await told.call("rotateWebhookSecret", one)
    await told.call("testWebhook", one)
    told.clock.move(-BETWEEN_CALLS)
    await told.refused("RATE_LIMITED", "testWebhook", one)
    await told.call("listWebhooks")


async def _settings(told: Storyteller) -> None:
    ids = {one["slug"]: one["id"] for one in await told.call("listBusinessGateways")}
    change = {"displayName": "Card or bank", "isDefault": True}
    await told.call("updateBusinessGateway", ids["provider_a"], json=change)
    order = [{"gatewayId": ids[slug], "displayOrder": place} for place, slug in enumerate(("provider_b", "provider_a"))]
    await told.call("reorderBusinessGateways", json={"order": order})
    await told.call("updateBusinessGateway", ids["provider_b"], json={"isEnabled": False})


async def reconcile(told: Storyteller) -> None:
    """What is read afterwards: lists, sums, exports, logs, past events, anomalies, the audit."""
    days = {"from": "2025-01-31T00:00:00Z", "to": "2025-02-01T00:00:00Z"}
    for listed, added_up, exported, where in (
        # Only a key says by itself which environment is meant.
        ("listPayments", "getPaymentSummary", "exportPayments", {}),
        ("listBusinessPayments", "getBusinessPaymentSummary", "exportBusinessPayments", SANDBOX),
        ("listAllPayments", "getAllPaymentsSummary", "exportAllPayments", SANDBOX),
    ):
        await told.call(listed, params={**where, "limit": 2})
        await told.call(added_up, params={**where, **days})
        await told.call(f"{added_up}Csv", params={**where, **days})
        await told.call(exported, params={**where, "status": "SUCCESS"})
    await told.passes(minutes=1)
    log = await told.call("listWebhookDeliveries", told.endpoint, params={"perPage": 2})
    await told.call("redeliverWebhook", told.business, told.endpoint, log[0]["id"])
    await told.call("listEvents", params={**SANDBOX, "limit": 1})
    await told.call("listEventsOfKey", params={"limit": 1})
    await told.call("listAdjustments", params={**SANDBOX, "needsAttention": "true", "limit": 2})
    await _anomalies(told)
    day, runs = told.clock.now().date(), told.services.reconciliation_runs
    done, _ = await runs.reconcile("provider_a", Environment.SANDBOX, day, day, by=Actor(ActorRealm.CLI, "ops-1"))
    await told.call("listReconciliations", params={"limit": 2})
    await told.call("getReconciliation", done.id)
    await told.call("exportReconciliationFindings", done.id)
    gateways = {one["slug"]: one["id"] for one in await told.call("listGateways")}
    for of_gateway in ("getGateway", "listGatewayMerchants", "getGatewayReadiness"):
        await told.call(of_gateway, gateways["provider_b"])
    for id in ("getServiceHealth", "listOwnBusinesses", "getOwnBusiness", "listOwnBusinessMembers"):
        await told.call(id)
    paid = await told.call("listBusinessPayments", params={**SANDBOX, "status": "SUCCESS"})
    reference = paid["payments"][0]["reference"]
    await told.call("getBusinessPaymentStory", reference, params=SANDBOX)
    await told.call("getPaymentStory", reference)
    await told.call("listAudit", params={"limit": 2})
    await told.call("listBusinessAudit", params={"limit": 2})
    await _left_without_gateways(told, gateways["provider_a"])
    await told.call("updateBusiness", json={"status": "RESTRICTED"})
    await told.refused("BUSINESS_RESTRICTED", "getPaymentContext")


async def _anomalies(told: Storyteller) -> None:
    one = (await told.call("listAnomalies", params={"limit": 2}))["anomalies"][0]["id"]
    await told.call("assignAnomaly", one, json={"assignee": "ada"})
    note = {"text": "Asked the provider, case 4711."}
    for _ in range(NOTES_MAX):
        await told.call("addAnomalyNote", one, json=note)
    await told.refused("NOTE_LIMIT_REACHED", "addAnomalyNote", one, json=note)
    await told.call("acknowledgeAnomaly", one)
    await told.refused("ANOMALY_NOT_OPEN", "acknowledgeAnomaly", one)
    reason = {"reason": "Refunded at the provider."}
    await told.call("closeAnomaly", one, json=reason)
    await told.refused("ANOMALY_ALREADY_CLOSED", "closeAnomaly", one, json=reason)


async def _left_without_gateways(told: Storyteller, provider: str) -> None:
    """The provider loses its sandbox keys; then the business switches it off."""
    await told.call("listBusinessGateways")
    made = await told.call("initiatePayment", json={"amount": 150000, "idempotencyKey": "order-1009"})
    await told.call("updateGatewayCredentials", provider, json={"credentials": {"liveSecretKey": "sk_live_canary"}})
    choice = {"gatewaySlug": "provider_a"}
    await told.refused("GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "processPayment", made["reference"], json=choice)
    await told.call("updateBusinessGateway", provider, json={"isEnabled": False})
    await told.refused("NO_GATEWAY_AVAILABLE", "initiatePayment", json={"amount": 150000}, headers=told.live)
