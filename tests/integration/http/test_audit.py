"""The audit trail over HTTP: every changing route leaves its entry, and who may read which."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from payagg_testing.builders import NOW, a_payment, an_id

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.audit import Action, ActorRealm
from payagg.domain.payment import Trigger
from payagg.entrypoints.http.api.openapi.operations import routes_of
from payagg.entrypoints.http.app import api_routes
from tests.support.audit_trail import entries
from tests.support.http_world import Api, Shop, a_token, admin_token, assert_refused, bearer
from tests.support.images import an_image
from tests.support.receivers import a_receiver

ADMIN = bearer(admin_token())
SUPPORT = bearer(admin_token("SUPPORT"))
# Made with a secret key, on the checkout page or by a provider, a change is in the payment's own history.
CHANGING = {
    route.id: route
    for route in routes_of(api_routes())
    if route.method != "get" and route.operation.guard.scheme in ("adminBearer", "merchantBearer")
}
SECRET = "sk_test_" + "5" * 40


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


@dataclass
class Walk:
    """Calls changing routes one after the other and finds what each left."""

    api: Api
    shop: Shop
    walked: set[str] = field(default_factory=set)

    async def change(self, id: str, body: Any = None, named: str | None = None, **names: str) -> Any:
        """The answer's data. The entry is that of the object `named`, which is the one answered or last in the path."""
        route = CHANGING[id]
        is_admin = route.operation.guard.scheme == "adminBearer"
        sent: dict[str, Any] = {"files": {"file": ("a.png", body)}} if isinstance(body, bytes) else {"json": body}
        answer = await self.api.client.request(
            route.method.upper(),
            route.path.format(**{"businessId": self.shop.business.id, **names}),
            headers={**(ADMIN if is_admin else self.shop.as_owner), "X-Request-Id": f"walk.{id}"},
            **sent,
        )
        assert answer.is_success, f"{id}: {answer.text}"
        data = answer.json().get("data")
        answered = data if isinstance(data, dict) else {}
        wanted = named or answered.get("id") or answered.get("reference") or [*names.values(), self.shop.business.id][0]
        found = [entry for entry in await entries(self.api.services.store) if entry.request_id == f"walk.{id}"]
        assert wanted in {entry.object_id for entry in found}, f"{id}: {found}"
        who = (ActorRealm.ADMIN, "admin-1") if is_admin else (ActorRealm.MERCHANT, self.shop.owner)
        assert {(entry.realm, entry.subject, entry.address) for entry in found} == {(*who, "127.0.0.1")}
        if "businessId" in route.parameters:
            assert {entry.business_id for entry in found} == {self.shop.business.id}
        self.walked.add(id)
        return data


@pytest.mark.rule("audit.1")
async def test_every_changing_route_says_who_from_where_what_and_which_request(api: Api, shop: Shop) -> None:
    walk = Walk(api, shop)
    gateway = (await walk.change("createGateway", {"slug": "acme", "name": "Acme Pay"}))["id"]
    await walk.change("updateGateway", {"name": "Acme"}, gatewayId=gateway)
    await walk.change("updateGatewayCredentials", {"credentials": {"liveSecretKey": SECRET}}, gatewayId=gateway)
    own = (await walk.change("createGateway", {"slug": "provider_a", "name": "Provider A"}))["id"]
    for secret in (SECRET, SECRET[:-1] + "6"):
        credentials = {"sandboxSecretKey": secret, "sandboxBaseUrl": "http://127.0.0.1:1"}
        await walk.change("updateGatewayCredentials", {"credentials": credentials}, gatewayId=own)
    await walk.change("testGatewayCredentials", {"environment": "SANDBOX"}, gatewayId=own)
    await walk.change("endCredentialsOverlap", gatewayId=own)
    await walk.change("uploadGatewayLogo", an_image(), gatewayId=gateway)
    await walk.change("enableGateway", gatewayId=gateway)
    await walk.change("updateBusinessGateway", {"displayName": "Cards"}, gatewayId=gateway)
    await walk.change("reorderBusinessGateways", {"order": [{"gatewayId": gateway, "displayOrder": 3}]}, named=gateway)
    key = await walk.change("generateApiKey", {"environment": "LIVE", "name": "Till"})
    await walk.change("revokeApiKey", keyId=key["id"])

    async with a_receiver() as receiver:
        endpoint = await walk.change("createWebhook", {"environment": "SANDBOX", "url": receiver.origin})
        test = (await walk.change("createTestPayment", {"amount": 5000}))["reference"]
        await walk.change("simulateTestPayment", {"outcome": "SUCCESS"}, reference=test)
        await api.services.dispatcher.run_once()
        sent = (await api.get(f"{shop.path}/webhooks/{endpoint['id']}/deliveries", shop.as_owner))[0]["id"]
        await walk.change("redeliverWebhook", endpointId=endpoint["id"], deliveryId=sent)
        own = await api.paid(shop, webhookUrl="https://shop.example/own")
        [log] = await api.get(f"{shop.path}/payments/{own}/deliveries", shop.as_owner)
        await walk.change("redeliverToPayment", deliveryId=log["id"], reference=own)
        await walk.change("testWebhook", endpointId=endpoint["id"])
    await walk.change("updateWebhook", {"description": "Main"}, endpointId=endpoint["id"])
    rotated = await walk.change("rotateWebhookSecret", endpointId=endpoint["id"])
    await walk.change("deactivateWebhook", endpointId=endpoint["id"])
    gone = f"{shop.path}/webhooks/{endpoint['id']}"
    assert (await api.client.delete(gone, params={"permanently": "true"}, headers=shop.as_owner)).status_code == 200

    await walk.change("createBusiness", {"name": "Bo's", "owner": "bo"})
    await walk.change("updateBusiness", {"status": "RESTRICTED"})
    await walk.change("setBusinessMember", {"subject": "bo", "role": "ADMIN"}, named="bo")
    await walk.change("removeBusinessMember", {"subject": "bo"}, named="bo")
    gone = (await walk.change("createGateway", {"slug": "gone", "name": "Gone"}))["id"]
    await walk.change("deleteGateway", gatewayId=gone)
    await walk.change("disableGateway", gatewayId=gateway)

    async with api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(an_id("anm"), None, AnomalyKind.UNKNOWN_REFERENCE, "event:provider_a", {}, NOW))
    await walk.change("assignAnomaly", {"assignee": "ada"}, anomalyId=an_id("anm"))
    await walk.change("addAnomalyNote", {"text": "Asked the provider."}, anomalyId=an_id("anm"))
    await walk.change("acknowledgeAnomaly", anomalyId=an_id("anm"))
    await walk.change("closeAnomaly", {"reason": "Refunded by hand."}, anomalyId=an_id("anm"))

    stuck, _ = await api.services.store.add_payment(a_payment(business_id=shop.business.id))
    fact = Anomaly(an_id("anm", 2), stuck.reference, AnomalyKind.NO_EVIDENCE, "reconciler", {}, NOW)
    async with api.services.store.begin() as tx:
        await api.services.settlement.move(tx, stuck, Trigger.PROCESS, actor="payer")
        await tx.anomalies.add(fact)
    ending = {"outcome": "FAILED", "reason": "Account closed.", "evidence": "Case 4711."}
    await walk.change("requestResolution", ending, named=stuck.reference, reference=stuck.reference)
    # The walk is one administrator's; who asked does not confirm.
    other = bearer(a_token("admin-2", type="admin", role="ADMIN"))
    confirm = f"/admin/payments/{stuck.reference}/resolve/confirm"
    assert (await api.client.post(confirm, headers=other)).status_code == 200
    walk.walked.add("confirmResolution")

    assert walk.walked == set(CHANGING)
    trail = await entries(api.services.store)
    # What no route does is the clock's and the commands'.
    others = {Action.GATEWAY_END_DRAIN, Action.GATEWAY_WIPE_SECRETS, Action.ARCHIVE_BEGIN_REMOVE, Action.ARCHIVE_REMOVE}
    others |= {Action.BUSINESS_MOVE, Action.PAYMENT_DISCLOSE, Action.PAYMENT_ERASE, Action.RESTORE_BEGIN_CATCH_UP}
    others |= {Action.RESTORE_CATCH_UP, Action.RETENTION_CLEAR, Action.SECRETS_RESEAL, Action.TOKEN_ISSUE}
    others.add(Action.TOKEN_REVOKE)
    assert {entry.action for entry in trail} == {action.value for action in set(Action) - others}
    for secret in (SECRET, key["secretKey"], endpoint["signingSecret"], rotated["signingSecret"], "sealed"):
        assert secret not in repr(trail)


@pytest.mark.rule("GET /admin/audit", "GET /merchant/businesses/{businessId}/audit")
async def test_an_administrator_reads_everything_and_a_manager_the_own_business(api: Api) -> None:
    shop, other = await api.open_shop(), await api.open_shop()
    for one in (shop, other):
        body = {"environment": "LIVE", "name": "Till"}
        await api.client.post(f"{one.path}/api-keys", json=body, headers=one.as_owner)
    await api.add_endpoint(shop, environment="LIVE")
    await api.client.patch(f"/admin/businesses/{shop.business.id}", json={"status": "RESTRICTED"}, headers=ADMIN)

    async def told(**query: Any) -> list[str]:
        return [entry["action"] for entry in (await api.get("/admin/audit", SUPPORT, **query))["entries"]]

    own = ["business.update", "webhook.create", "api_key.create"]
    for query, found in (
        ({}, [*own, "api_key.create"]),
        ({"businessId": shop.business.id}, own),
        ({"action": "api_key.create", "subject": shop.owner, "from": "2020-01-01T00:00:00Z"}, ["api_key.create"]),
        ({"objectId": shop.business.id}, ["business.update"]),
        ({"to": "2020-01-01T00:00:00+01:00"}, []),
        ({"limit": "1"}, ["business.update"]),
    ):
        assert sorted(await told(**query)) == sorted(found), query
    page = await api.get("/admin/audit", ADMIN, limit=3)
    assert page["hasMore"] is True
    assert len(await told(after=page["nextCursor"])) == 1

    answer = await api.client.get(f"{shop.path}/audit?businessId=x", headers=shop.as_owner)
    assert_refused(answer, 400, "VALIDATION_ERROR", "businessId")
    entries_shown = (await api.get(f"{shop.path}/audit", shop.as_owner))["entries"]
    assert [entry["action"] for entry in entries_shown] == own
    assert {entry["businessId"] for entry in entries_shown} == {shop.business.id}
    update, create, _ = entries_shown
    assert (update["realm"], update["address"], update["requestId"]) == ("admin", None, None)  # where operators sit
    assert update["changes"] == {"status": {"before": "ACTIVE", "after": "RESTRICTED"}}
    assert (create["realm"], create["subject"], create["address"]) == ("merchant", shop.owner, "127.0.0.1")
    assert create["requestId"]
