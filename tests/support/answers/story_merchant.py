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
    sandbox: dict[str, str]
    live: dict[str, str]


async def manage(told: "Storyteller", business: str) -> Selling:
    path = f"/merchant/businesses/{business}"
    as_owner: dict[str, Any] = {"headers": told.owner}
    unverified = bearer(merchant_token("owner-1", verified=False))
    await told.refused("EMAIL_NOT_VERIFIED", "GET", f"{path}/api-keys", headers=unverified)
    await told.refused("NO_SANDBOX_KEY", "POST", f"{path}/test-payment", json={"amount": 150000}, **as_owner)
    wish = {"environment": "LIVE", "name": "Server"}
    await told.refused("KYC_REQUIRED", "POST", f"{path}/api-keys", json=wish, **as_owner)
    approved = {"kycStatus": "APPROVED"}
    await told.call("updateBusiness", "PATCH", f"/admin/businesses/{business}", json=approved, headers=told.admin)
    keys = {}
    for environment in ("SANDBOX", "LIVE"):
        wish = {"environment": environment, "name": "Server"}
        keys[environment] = await told.call("generateApiKey", "POST", f"{path}/api-keys", 201, json=wish, **as_owner)
    for number in range(2, 6):
        wish = {"environment": "SANDBOX", "name": f"Spare {number}"}
        spare = await told.call("generateApiKey", "POST", f"{path}/api-keys", 201, json=wish, **as_owner)
    await told.refused("KEY_LIMIT_REACHED", "POST", f"{path}/api-keys", json=wish, **as_owner)
    await told.call("revokeApiKey", "DELETE", f"{path}/api-keys/{spare['id']}", **as_owner)
    await told.refused("API_KEY_ALREADY_REVOKED", "DELETE", f"{path}/api-keys/{spare['id']}", **as_owner)
    await told.call("listApiKeys", "GET", f"{path}/api-keys", **as_owner)
    endpoint = await _endpoints(told, path)
    await _settings(told, path)
    sandbox, live = (bearer(keys[environment]["secretKey"]) for environment in ("SANDBOX", "LIVE"))
    return Selling(business, path, endpoint, sandbox, live)


async def _endpoints(told: "Storyteller", path: str) -> str:
    as_owner: dict[str, Any] = {"headers": told.owner}
    hooks = f"{path}/webhooks"
    made = await told.call("createWebhook", "POST", hooks, 201, json=HOOK, **as_owner)
    for number in range(2, 6):
        spare = {**HOOK, "environment": "LIVE", "description": f"Spare {number}"}
        last = await told.call("createWebhook", "POST", hooks, 201, json=spare, **as_owner)
    await told.refused("WEBHOOK_LIMIT_REACHED", "POST", hooks, json=HOOK, **as_owner)
    await told.call("deactivateWebhook", "DELETE", f"{hooks}/{last['id']}", **as_owner)
    one = f"{hooks}/{made['id']}"
    await told.call("updateWebhook", "PATCH", one, json={"description": "Orders"}, **as_owner)
    await told.call("rotateWebhookSecret", "POST", f"{one}/rotate-secret", **as_owner)
    await told.call("testWebhook", "POST", f"{one}/test", **as_owner)
    told.clock.move(-BETWEEN_CALLS)
    await told.refused("RATE_LIMITED", "POST", f"{one}/test", **as_owner)
    await told.call("listWebhooks", "GET", hooks, **as_owner)
    return str(made["id"])


async def _settings(told: "Storyteller", path: str) -> None:
    as_owner: dict[str, Any] = {"headers": told.owner}
    shown = await told.call("listBusinessGateways", "GET", f"{path}/gateways", **as_owner)
    ids = {one["slug"]: one["id"] for one in shown}
    change = {"displayName": "Card or bank", "isDefault": True}
    await told.call("updateBusinessGateway", "PATCH", f"{path}/gateways/{ids['provider_a']}", json=change, **as_owner)
    order = [{"gatewayId": ids[slug], "displayOrder": place} for place, slug in enumerate(("provider_b", "provider_a"))]
    await told.call("reorderBusinessGateways", "POST", f"{path}/gateways/reorder", json={"order": order}, **as_owner)
    off = {"isEnabled": False}
    await told.call("updateBusinessGateway", "PATCH", f"{path}/gateways/{ids['provider_b']}", json=off, **as_owner)


async def reconcile(told: "Storyteller", shop: Selling) -> None:
    """What is read afterwards: lists, sums, exports, logs, past events, anomalies, the audit."""
    as_owner: dict[str, Any] = {"headers": told.owner}
    as_admin: dict[str, Any] = {"headers": told.admin}
    days = {"from": "2025-01-31T00:00:00Z", "to": "2025-02-01T00:00:00Z"}
    for prefix, (listed, added_up, exported), who in (
        ("/payments", ("listPayments", "getPaymentSummary", "exportPayments"), {"headers": shop.sandbox}),
        (
            f"{shop.path}/payments",
            ("listBusinessPayments", "getBusinessPaymentSummary", "exportBusinessPayments"),
            as_owner,
        ),
        ("/admin/payments", ("listAllPayments", "getAllPaymentsSummary", "exportAllPayments"), as_admin),
    ):
        # Only a key says by itself which environment is meant.
        where = {} if prefix == "/payments" else {"environment": "SANDBOX"}
        await told.call(listed, "GET", prefix, params={**where, "limit": 2}, **who)
        await told.call(added_up, "GET", f"{prefix}/summary", params={**where, **days}, **who)
        await told.call(f"{added_up}Csv", "GET", f"{prefix}/summary.csv", params={**where, **days}, **who)
        export = {**where, "status": "SUCCESS"}
        await told.call(exported, "GET", f"{prefix}/export", params=export, **who)
    await told.passes(minutes=1)
    hook = f"{shop.path}/webhooks/{shop.endpoint}"
    log = await told.call("listWebhookDeliveries", "GET", f"{hook}/deliveries", params={"perPage": 2}, **as_owner)
    await told.call("redeliverWebhook", "POST", f"{hook}/deliveries/{log[0]['id']}/redeliver", **as_owner)
    await told.call(
        "listEvents", "GET", f"{shop.path}/events", params={"environment": "SANDBOX", "limit": 1}, **as_owner
    )
    await told.call("listEventsOfKey", "GET", "/events", params={"limit": 1}, headers=shop.sandbox)
    page = {"environment": "SANDBOX", "needsAttention": "true", "limit": 2}
    await told.call("listAdjustments", "GET", f"{shop.path}/adjustments", params=page, **as_owner)
    found = await told.call("listAnomalies", "GET", "/admin/anomalies", params={"limit": 2}, **as_admin)
    one = f"/admin/anomalies/{found['anomalies'][0]['id']}"
    await told.call("assignAnomaly", "PATCH", one, json={"assignee": "ada"}, **as_admin)
    note = {"text": "Asked the provider, case 4711."}
    for _ in range(NOTES_MAX):
        await told.call("addAnomalyNote", "POST", f"{one}/notes", 201, json=note, **as_admin)
    await told.refused("NOTE_LIMIT_REACHED", "POST", f"{one}/notes", json=note, **as_admin)
    await told.call("acknowledgeAnomaly", "POST", f"{one}/acknowledge", **as_admin)
    await told.refused("ANOMALY_NOT_OPEN", "POST", f"{one}/acknowledge", **as_admin)
    reason = {"reason": "Refunded at the provider."}
    await told.call("closeAnomaly", "POST", f"{one}/close", json=reason, **as_admin)
    await told.refused("ANOMALY_ALREADY_CLOSED", "POST", f"{one}/close", json=reason, **as_admin)
    day = told.clock.now().date()
    runs = told.services.reconciliation_runs
    done, _ = await runs.reconcile("provider_a", Environment.SANDBOX, day, day, by=Actor(ActorRealm.CLI, "ops-1"))
    await told.call("listReconciliations", "GET", "/admin/reconciliations", params={"limit": 2}, **as_admin)
    one = f"/admin/reconciliations/{done.id}"
    await told.call("getReconciliation", "GET", one, **as_admin)
    await told.call("exportReconciliationFindings", "GET", f"{one}/findings.csv", **as_admin)
    gateways = await told.call("listGateways", "GET", "/admin/gateways", **as_admin)
    provider_a = next(one["id"] for one in gateways if one["slug"] == "provider_b")
    await told.call("getGateway", "GET", f"/admin/gateways/{provider_a}", **as_admin)
    await told.call("listGatewayMerchants", "GET", f"/admin/gateways/{provider_a}/merchants", **as_admin)
    await told.call("getGatewayReadiness", "GET", f"/admin/gateways/{provider_a}/readiness", **as_admin)
    await told.call("getServiceHealth", "GET", "/admin/health", **as_admin)
    await told.call("listOwnBusinesses", "GET", "/merchant/businesses", **as_owner)
    await told.call("getOwnBusiness", "GET", shop.path, **as_owner)
    where = {"environment": "SANDBOX"}
    paid = await told.call(
        "listBusinessPayments", "GET", f"{shop.path}/payments", params={**where, "status": "SUCCESS"}, **as_owner
    )
    reference = paid["payments"][0]["reference"]
    await told.call(
        "getBusinessPaymentStory", "GET", f"{shop.path}/payments/{reference}/story", params=where, **as_owner
    )
    await told.call("getPaymentStory", "GET", f"/admin/payments/{reference}/story", **as_admin)
    await told.call("listAudit", "GET", "/admin/audit", params={"limit": 2}, **as_admin)
    await told.call("listBusinessAudit", "GET", f"{shop.path}/audit", params={"limit": 2}, **as_owner)
    await _left_without_gateways(told, shop)
    restricted = {"status": "RESTRICTED"}
    await told.call("updateBusiness", "PATCH", f"/admin/businesses/{shop.business}", json=restricted, **as_admin)
    await told.refused("BUSINESS_RESTRICTED", "GET", "/payments/context", headers=shop.sandbox)


async def _left_without_gateways(told: "Storyteller", shop: Selling) -> None:
    """The provider loses its sandbox keys; then the business switches it off."""
    as_owner: dict[str, Any] = {"headers": told.owner}
    shown = await told.call("listBusinessGateways", "GET", f"{shop.path}/gateways", **as_owner)
    provider = next(one["id"] for one in shown if one["slug"] == "provider_a")
    body: dict[str, Any] = {"amount": 150000, "idempotencyKey": "order-1009"}
    made = await told.call("initiatePayment", "POST", "/payments/initiate", 201, json=body, headers=shop.sandbox)
    credentials = {"credentials": {"liveSecretKey": "sk_live_canary"}}
    path = f"/admin/gateways/{provider}/credentials"
    await told.call("updateGatewayCredentials", "PATCH", path, json=credentials, headers=told.admin)
    process = f"/public/payments/{made['reference']}/process"
    await told.refused("GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "POST", process, json={"gatewaySlug": "provider_a"})
    off = {"isEnabled": False}
    await told.call("updateBusinessGateway", "PATCH", f"{shop.path}/gateways/{provider}", json=off, **as_owner)
    live = {"amount": 150000}
    await told.refused("NO_GATEWAY_AVAILABLE", "POST", "/payments/initiate", json=live, headers=shop.live)
