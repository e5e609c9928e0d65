"""The merchant's part of the story: keys, webhook endpoints, checkout settings; later lists, logs and the audit."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from payagg.domain.anomaly import NOTES_MAX
from payagg.domain.audit import Actor, ActorRealm
from payagg.domain.values import Environment
from tests.support.http_world import bearer, merchant_token

if TYPE_CHECKING:
    from tests.support.answers.story import Storyteller

HOOK = {"url": "https://shop.example/hooks", "environment": "SANDBOX", "description": "Order service", "events": []}

BETWEEN_CALLS = timedelta(seconds=7)


@dataclass(frozen=True)
class Selling:
    """`path` begins the business's routes; `endpoint` receives its sandbox events."""

    business: str
    path: str
    endpoint: str
    live: dict[str, str]


async def manage(told: "Storyteller", business: str) -> Selling:
    path = f"/merchant/businesses/{business}"
    unverified = bearer(merchant_token("owner-1", verified=False))
    await told.refused("EMAIL_NOT_VERIFIED", "GET", f"{path}/api-keys", headers=unverified)
    await told.refused("NO_SANDBOX_KEY", "POST", f"{path}/test-payment", json={"amount": 150000})
    wish = {"environment": "LIVE", "name": "Server"}
    await told.refused("KYC_REQUIRED", "POST", f"{path}/api-keys", json=wish)
    approved = {"kycStatus": "APPROVED"}
    await told.call("updateBusiness", f"/admin/businesses/{business}", json=approved)
    keys = {}
    for environment in ("SANDBOX", "LIVE"):
        wish = {"environment": environment, "name": "Server"}
        keys[environment] = await told.call("generateApiKey", f"{path}/api-keys", json=wish)
    for number in range(2, 6):
        wish = {"environment": "SANDBOX", "name": f"Spare {number}"}
        spare = await told.call("generateApiKey", f"{path}/api-keys", json=wish)
    await told.refused("KEY_LIMIT_REACHED", "POST", f"{path}/api-keys", json=wish)
    await told.call("revokeApiKey", f"{path}/api-keys/{spare['id']}")
    await told.refused("API_KEY_ALREADY_REVOKED", "DELETE", f"{path}/api-keys/{spare['id']}")
    await told.call("listApiKeys", f"{path}/api-keys")
    endpoint = await _endpoints(told, path)
    await _settings(told, path)
    told.server, live = (bearer(keys[environment]["secretKey"]) for environment in ("SANDBOX", "LIVE"))
    return Selling(business, path, endpoint, live)


async def _endpoints(told: "Storyteller", path: str) -> str:
    hooks = f"{path}/webhooks"
    made = await told.call("createWebhook", hooks, json=HOOK)
    for number in range(2, 6):
        spare = {**HOOK, "environment": "LIVE", "description": f"Spare {number}"}
        last = await told.call("createWebhook", hooks, json=spare)
    await told.refused("WEBHOOK_LIMIT_REACHED", "POST", hooks, json=HOOK)
    await told.call("deactivateWebhook", f"{hooks}/{last['id']}")
    one = f"{hooks}/{made['id']}"
    await told.call("updateWebhook", one, json={"description": "Orders"})
    await told.call("rotateWebhookSecret", f"{one}/rotate-secret")
    await told.call("testWebhook", f"{one}/test")
    told.clock.move(-BETWEEN_CALLS)
    await told.refused("RATE_LIMITED", "POST", f"{one}/test")
    await told.call("listWebhooks", hooks)
    return str(made["id"])


async def _settings(told: "Storyteller", path: str) -> None:
    shown = await told.call("listBusinessGateways", f"{path}/gateways")
    ids = {one["slug"]: one["id"] for one in shown}
    change = {"displayName": "Card or bank", "isDefault": True}
    await told.call("updateBusinessGateway", f"{path}/gateways/{ids['provider_a']}", json=change)
    order = [{"gatewayId": ids[slug], "displayOrder": place} for place, slug in enumerate(("provider_b", "provider_a"))]
    await told.call("reorderBusinessGateways", f"{path}/gateways/reorder", json={"order": order})
    off = {"isEnabled": False}
    await told.call("updateBusinessGateway", f"{path}/gateways/{ids['provider_b']}", json=off)


async def reconcile(told: "Storyteller", shop: Selling) -> None:
    """What is read afterwards: lists, sums, exports, logs, past events, anomalies, the audit."""
    days = {"from": "2025-01-31T00:00:00Z", "to": "2025-02-01T00:00:00Z"}
    for prefix, (listed, added_up, exported) in (
        ("/payments", ("listPayments", "getPaymentSummary", "exportPayments")),
        (f"{shop.path}/payments", ("listBusinessPayments", "getBusinessPaymentSummary", "exportBusinessPayments")),
        ("/admin/payments", ("listAllPayments", "getAllPaymentsSummary", "exportAllPayments")),
    ):
        # Only a key says by itself which environment is meant.
        where = {} if prefix == "/payments" else {"environment": "SANDBOX"}
        await told.call(listed, prefix, params={**where, "limit": 2})
        await told.call(added_up, f"{prefix}/summary", params={**where, **days})
        await told.call(f"{added_up}Csv", f"{prefix}/summary.csv", params={**where, **days})
        export = {**where, "status": "SUCCESS"}
        await told.call(exported, f"{prefix}/export", params=export)
    await told.passes(minutes=1)
    hook = f"{shop.path}/webhooks/{shop.endpoint}"
    log = await told.call("listWebhookDeliveries", f"{hook}/deliveries", params={"perPage": 2})
    await told.call("redeliverWebhook", f"{hook}/deliveries/{log[0]['id']}/redeliver")
    await told.call("listEvents", f"{shop.path}/events", params={"environment": "SANDBOX", "limit": 1})
    await told.call("listEventsOfKey", "/events", params={"limit": 1})
    page = {"environment": "SANDBOX", "needsAttention": "true", "limit": 2}
    await told.call("listAdjustments", f"{shop.path}/adjustments", params=page)
    found = await told.call("listAnomalies", "/admin/anomalies", params={"limit": 2})
    one = f"/admin/anomalies/{found['anomalies'][0]['id']}"
    await told.call("assignAnomaly", one, json={"assignee": "ada"})
    note = {"text": "Asked the provider, case 4711."}
    for _ in range(NOTES_MAX):
        await told.call("addAnomalyNote", f"{one}/notes", json=note)
    await told.refused("NOTE_LIMIT_REACHED", "POST", f"{one}/notes", json=note)
    await told.call("acknowledgeAnomaly", f"{one}/acknowledge")
    await told.refused("ANOMALY_NOT_OPEN", "POST", f"{one}/acknowledge")
    reason = {"reason": "Refunded at the provider."}
    await told.call("closeAnomaly", f"{one}/close", json=reason)
    await told.refused("ANOMALY_ALREADY_CLOSED", "POST", f"{one}/close", json=reason)
    day = told.clock.now().date()
    runs = told.services.reconciliation_runs
    done, _ = await runs.reconcile("provider_a", Environment.SANDBOX, day, day, by=Actor(ActorRealm.CLI, "ops-1"))
    await told.call("listReconciliations", "/admin/reconciliations", params={"limit": 2})
    one = f"/admin/reconciliations/{done.id}"
    await told.call("getReconciliation", one)
    await told.call("exportReconciliationFindings", f"{one}/findings.csv")
    gateways = await told.call("listGateways", "/admin/gateways")
    provider_a = next(one["id"] for one in gateways if one["slug"] == "provider_b")
    await told.call("getGateway", f"/admin/gateways/{provider_a}")
    await told.call("listGatewayMerchants", f"/admin/gateways/{provider_a}/merchants")
    await told.call("getGatewayReadiness", f"/admin/gateways/{provider_a}/readiness")
    await told.call("getServiceHealth", "/admin/health")
    await told.call("listOwnBusinesses", "/merchant/businesses")
    await told.call("getOwnBusiness", shop.path)
    await told.call("listOwnBusinessMembers", f"{shop.path}/members")
    where = {"environment": "SANDBOX"}
    paid = await told.call("listBusinessPayments", f"{shop.path}/payments", params={**where, "status": "SUCCESS"})
    reference = paid["payments"][0]["reference"]
    await told.call("getBusinessPaymentStory", f"{shop.path}/payments/{reference}/story", params=where)
    await told.call("getPaymentStory", f"/admin/payments/{reference}/story")
    await told.call("listAudit", "/admin/audit", params={"limit": 2})
    await told.call("listBusinessAudit", f"{shop.path}/audit", params={"limit": 2})
    await _left_without_gateways(told, shop)
    restricted = {"status": "RESTRICTED"}
    await told.call("updateBusiness", f"/admin/businesses/{shop.business}", json=restricted)
    await told.refused("BUSINESS_RESTRICTED", "GET", "/payments/context")


async def _left_without_gateways(told: "Storyteller", shop: Selling) -> None:
    """The provider loses its sandbox keys; then the business switches it off."""
    shown = await told.call("listBusinessGateways", f"{shop.path}/gateways")
    provider = next(one["id"] for one in shown if one["slug"] == "provider_a")
    body: dict[str, Any] = {"amount": 150000, "idempotencyKey": "order-1009"}
    made = await told.call("initiatePayment", "/payments/initiate", json=body)
    credentials = {"credentials": {"liveSecretKey": "sk_live_canary"}}
    path = f"/admin/gateways/{provider}/credentials"
    await told.call("updateGatewayCredentials", path, json=credentials)
    process = f"/public/payments/{made['reference']}/process"
    await told.refused("GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "POST", process, json={"gatewaySlug": "provider_a"})
    off = {"isEnabled": False}
    await told.call("updateBusinessGateway", f"{shop.path}/gateways/{provider}", json=off)
    live = {"amount": 150000}
    await told.refused("NO_GATEWAY_AVAILABLE", "POST", "/payments/initiate", json=live, headers=shop.live)
