"""The audit trail over HTTP: every changing route leaves its entry, and who may read which."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from payagg_testing.builders import NOW, a_payment, an_id

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.audit import Action, ActorRealm
from payagg.domain.payment import Trigger
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.openapi.operations import routes_of
from tests.support.audit_trail import entries
from tests.support.http_world import Api, Shop, a_token, admin_token, assert_refused, bearer, merchant_token
from tests.support.images import an_image
from tests.support.receivers import a_receiver

pytestmark = pytest.mark.anyio
ADMIN = bearer(admin_token())
SUPPORT = bearer(admin_token("SUPPORT"))
# Made with a secret key, on the checkout page or by a provider, a change is in the payment's own history.
CHANGING = {
    route.id: route
    for route in routes_of(api_routes())
    if route.method != "get" and route.operation.guard.scheme in ("adminBearer", "merchantBearer")
}
SECRET = "sk_test_" + "5" * 40


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
async def test_every_changing_route_leaves_an_entry_that_says_who_from_where_what_and_which_request(api: Api) -> None:
    shop = await api.open_shop()
    walk = Walk(api, shop)
    gateway = (await walk.change("createGateway", {"slug": "acme", "name": "Acme Pay"}))["id"]
    await walk.change("updateGateway", {"name": "Acme"}, gatewayId=gateway)
    credentials = {"credentials": {"liveSecretKey": SECRET}}
    await walk.change("updateGatewayCredentials", credentials, gatewayId=gateway)
    own = (await walk.change("createGateway", {"slug": "provider_a", "name": "Provider A"}))["id"]
    for secret in (SECRET, SECRET[:-1] + "6"):
        await walk.change("updateGatewayCredentials", {"credentials": {"sandboxSecretKey": secret}}, gatewayId=own)
    await walk.change("endCredentialsOverlap", gatewayId=own)
    await walk.change("uploadGatewayLogo", an_image(), gatewayId=gateway)
    await walk.change("enableGateway", gatewayId=gateway)
    await walk.change("updateBusinessGateway", {"displayName": "Cards"}, gatewayId=gateway)
    order = {"order": [{"gatewayId": gateway, "displayOrder": 3}]}
    await walk.change("reorderBusinessGateways", order, named=gateway)
    key = await walk.change("generateApiKey", {"environment": "LIVE", "name": "Till"})
    await walk.change("revokeApiKey", keyId=key["id"])

    async with a_receiver() as receiver:
        endpoint = await walk.change("createWebhook", {"environment": "SANDBOX", "url": receiver.origin})
        test = (await walk.change("createTestPayment", {"amount": 5000}))["reference"]
        await walk.change("simulateTestPayment", {"outcome": "SUCCESS"}, reference=test)
        await api.services.dispatcher.run_once()
        log = await api.client.get(f"{shop.path}/webhooks/{endpoint['id']}/deliveries", headers=shop.as_owner)
        sent = log.json()["data"][0]["id"]
        await walk.change("redeliverWebhook", endpointId=endpoint["id"], deliveryId=sent)
        own = await api.paid(shop, webhookUrl="https://shop.example/own")
        log = await api.client.get(f"{shop.path}/payments/{own}/deliveries", headers=shop.as_owner)
        await walk.change("redeliverToPayment", deliveryId=log.json()["data"][0]["id"], reference=own)
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
    clocks = {Action.GATEWAY_END_DRAIN, Action.GATEWAY_WIPE_SECRETS}
    commands = {
        Action.ARCHIVE_BEGIN_REMOVE,
        Action.ARCHIVE_REMOVE,
        Action.BUSINESS_MOVE,
        Action.PAYMENT_ERASE,
        Action.RESTORE_BEGIN_CATCH_UP,
        Action.RESTORE_CATCH_UP,
        Action.RETENTION_CLEAR,
        Action.SECRETS_RESEAL,
        Action.TOKEN_ISSUE,
        Action.TOKEN_REVOKE,
    }
    assert {entry.action for entry in trail} == {action.value for action in Action} - {
        action.value for action in clocks | commands
    }
    for secret in (SECRET, key["secretKey"], endpoint["signingSecret"], rotated["signingSecret"], "sealed"):
        assert secret not in repr(trail)


@pytest.mark.rule("audit.2")
async def test_an_endpoint_that_its_failures_switch_off_is_the_clocks_change(api: Api) -> None:
    shop = await api.open_shop()
    async with a_receiver() as receiver:
        receiver.answer = lambda _: (410, "")
        endpoint = await api.add_endpoint(shop, receiver.origin)
        reference = await api.paid(shop)
        assert await api.services.dispatcher.run_once() == 1
    (told,) = await entries(api.services.store, action="webhook.deactivate")
    assert (told.realm, told.subject, told.address) == (ActorRealm.CLOCK, "deliveries", None)
    assert (told.object_id, told.business_id) == (endpoint["id"], shop.business.id)
    (simulated,) = await entries(api.services.store, object_id=reference)
    assert (simulated.realm, simulated.action) == (ActorRealm.KEY, "payment.simulate")


@pytest.mark.rule("audit.1")
async def test_a_refused_request_leaves_no_entry(api: Api) -> None:
    shop = await api.open_shop()
    keys = f"{shop.path}/api-keys"
    for headers, body in (
        (bearer(merchant_token("member-1")), {"environment": "LIVE", "name": "Till"}),
        (shop.as_owner, {"environment": "LIVE", "name": "x"}),
    ):
        assert not (await api.client.post(keys, json=body, headers=headers)).is_success
    assert not (await api.client.delete(f"{keys}/key_none", headers=shop.as_owner)).is_success
    assert await entries(api.services.store) == []


async def a_business_with_history(api: Api) -> Shop:
    """Two entries of the shop's owner and one of an administrator's; another shop has one of its own."""
    shop, other = await api.open_shop(), await api.open_shop()
    for path, owner in ((shop, shop.as_owner), (other, other.as_owner)):
        made = await api.client.post(
            f"{path.path}/api-keys", json={"environment": "LIVE", "name": "Till"}, headers=owner
        )
    key = made.json()["data"]["id"]
    assert (await api.client.delete(f"{other.path}/api-keys/{key}", headers=other.as_owner)).is_success
    await api.add_endpoint(shop, environment="LIVE")
    change = {"status": "RESTRICTED"}
    await api.client.patch(f"/admin/businesses/{shop.business.id}", json=change, headers=ADMIN)
    return shop


@pytest.mark.rule("GET /admin/audit")
async def test_an_administrator_reads_everything_and_filters_it(api: Api) -> None:
    shop = await a_business_with_history(api)
    other = api.shops[1]

    async def told(**query: Any) -> list[str]:
        answer = await api.client.get("/admin/audit", params=query, headers=SUPPORT)
        assert answer.status_code == 200, answer.text
        return [entry["action"] for entry in answer.json()["data"]["entries"]]

    assert sorted(await told()) == ["api_key.create"] * 2 + ["api_key.revoke", "business.update", "webhook.create"]
    assert await told(businessId=shop.business.id) == ["business.update", "webhook.create", "api_key.create"]
    assert await told(subject=other.owner) == ["api_key.revoke", "api_key.create"]
    assert await told(action="api_key.create", subject=shop.owner) == ["api_key.create"]
    assert await told(objectId=shop.business.id) == ["business.update"]
    assert await told(**{"from": "2999-01-01T00:00:00Z"}) == []
    assert len(await told(**{"from": "2020-01-01T00:00:00Z", "to": "2999-01-01T00:00:00+01:00"})) == 5
    pages = []
    after: dict[str, str] = {}
    while True:
        answer = await api.client.get("/admin/audit", params={"limit": 2, **after}, headers=ADMIN)
        page = answer.json()["data"]
        pages.append(len(page["entries"]))
        after = {"after": page["nextCursor"]}
        if not page["hasMore"]:
            break
    assert pages == [2, 2, 1]


@pytest.mark.rule("GET /merchant/businesses/{businessId}/audit")
async def test_a_manager_reads_the_own_business_alone_and_not_where_operators_sit(api: Api) -> None:
    shop = await a_business_with_history(api)
    query = {"businessId": api.shops[1].business.id}
    answer = await api.client.get(f"{shop.path}/audit", params=query, headers=shop.as_owner)
    assert_refused(answer, 400, "VALIDATION_ERROR", "businessId")
    answer = await api.client.get(f"{shop.path}/audit", headers=shop.as_owner)
    found = answer.json()["data"]["entries"]
    assert [entry["action"] for entry in found] == ["business.update", "webhook.create", "api_key.create"]
    assert {entry["businessId"] for entry in found} == {shop.business.id}
    update, create, _ = found
    assert (update["realm"], update["address"], update["requestId"]) == ("admin", None, None)
    assert update["changes"] == {"status": {"before": "ACTIVE", "after": "RESTRICTED"}}
    assert (create["realm"], create["subject"], create["address"]) == ("merchant", shop.owner, "127.0.0.1")
    assert create["requestId"]
    assert_refused(await api.client.get(f"{shop.path}/audit", headers=api.shops[1].as_owner), 403, "FORBIDDEN")


@pytest.fixture
def lines() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        yield lines


@pytest.mark.rule("audit.6")
async def test_the_log_line_names_who_called_and_which_object(
    lines: list[structlog.typing.EventDict], api: Api
) -> None:
    shop = await api.open_shop()
    made = await api.client.post(
        f"{shop.path}/api-keys", json={"environment": "SANDBOX", "name": "Till"}, headers=shop.as_owner
    )
    key = made.json()["data"]["id"]
    await api.client.delete(f"{shop.path}/api-keys/{key}", headers=shop.as_owner)
    await api.client.get(f"{shop.path}/gateways", headers=shop.as_owner)
    await api.client.get("/admin/gateways", headers=ADMIN)
    await api.client.get("/payments/context", headers=shop.as_sandbox)
    await api.client.get(f"{shop.path}/webhooks/canary", headers=shop.as_owner)
    await api.client.get(f"{shop.path}/gateways")
    requests = [line for line in lines if line["event"] == "request"]
    told = [(line.get("realm"), line.get("subject"), line.get("object")) for line in requests]
    (holder,) = {subject for realm, subject, _ in told if realm == "key"}
    assert str(holder).startswith("key_")
    assert told == [
        ("merchant", shop.owner, key),
        ("merchant", shop.owner, key),
        ("merchant", shop.owner, shop.business.id),
        ("admin", "admin-1", None),
        ("key", holder, None),
        (None, None, None),
        (None, None, shop.business.id),
    ]
