"""The audit trail over HTTP: every changing route leaves its entry, and who may read which."""

import re
from collections import defaultdict
from typing import Any

import pytest

from payagg.domain.audit import Action, ActorRealm, AuditEntry
from payagg.entrypoints.http.app import api_routes
from tests.support.answers.story import a_story
from tests.support.audit_trail import entries
from tests.support.http_world import Api, admin_token, assert_refused, bearer
from tools.openapi.operations import routes_of

ADMIN = bearer(admin_token())
SUPPORT = bearer(admin_token("SUPPORT"))
# Made with a secret key, on the checkout page or by a provider, a change is in the payment's own history.
CHANGING = {
    route.id: route
    for route in routes_of(api_routes())
    if route.method != "get" and route.operation.guard.scheme in ("adminBearer", "merchantBearer")
}


@pytest.mark.rule("audit.1")
async def test_every_changing_route_says_who_from_where_what_and_which_request() -> None:
    """By the story of the examples, in which everybody calls every route."""
    async with a_story() as (told, _):
        await told.call("updateBusiness", json={"status": "ACTIVE"})
        await told.call("deactivateWebhook", told.endpoint, params={"permanently": "true"})
        [provider] = [one["id"] for one in await told.call("listGateways") if one["slug"] == "provider_a"]
        await told.call("endCredentialsOverlap", provider)
        trail = await entries(told.services.store)
    left = defaultdict[str | None, list[AuditEntry]](list)
    for entry in trail:
        left[entry.request_id].append(entry)
    changed, secrets = set[str](), {"sk_live_canary", "sealed"}
    for call in told.calls:
        found, said = left[call.request_id], call.asked + call.answer.text
        secrets |= set(re.findall(r"ssk_(?:sand|live)_[0-9a-f]{48}|whsec_[A-Za-z0-9+/]{16,}=*", said))
        route = CHANGING.get(call.id)
        if route is None:
            assert found == [], call.id
        elif found:
            changed.add(call.id)
            is_admin = route.operation.guard.scheme == "adminBearer"
            who = {"admin-1", "admin-2"} if is_admin else {"owner-1"}
            assert {entry.subject for entry in found} <= who, call.id
            realm = ActorRealm.ADMIN if is_admin else ActorRealm.MERCHANT
            assert {(entry.realm, entry.address) for entry in found} == {(realm, "127.0.0.1")}, call.id
            assert [entry.object_id for entry in found if entry.object_id not in said] == [], call.id
            if "businessId" in route.parameters:
                assert {entry.business_id for entry in found} == {told.business}, call.id
    assert changed == set(CHANGING)
    # What no route does is the clock's and the commands'.
    others = {Action.GATEWAY_WIPE_SECRETS, Action.ARCHIVE_BEGIN_REMOVE, Action.ARCHIVE_REMOVE, Action.BUSINESS_MOVE}
    others |= {Action.PAYMENT_DISCLOSE, Action.PAYMENT_ERASE, Action.RESTORE_BEGIN_CATCH_UP, Action.RESTORE_CATCH_UP}
    others |= {Action.RETENTION_CLEAR, Action.SECRETS_RESEAL, Action.TOKEN_ISSUE, Action.TOKEN_REVOKE}
    assert {entry.action for entry in trail} == {action.value for action in set(Action) - others}
    assert len(secrets) > 10
    assert [secret for secret in secrets if secret in repr(trail)] == []


@pytest.mark.rule("GET /admin/audit", "GET /merchant/businesses/{businessId}/audit")
async def test_an_administrator_reads_everything_and_a_manager_the_own_business(own_api: Api) -> None:
    shop, other = await own_api.open_shop(), await own_api.open_shop()
    for one in (shop, other):
        body = {"environment": "LIVE", "name": "Till"}
        await own_api.client.post(f"{one.path}/api-keys", json=body, headers=one.as_owner)
    await own_api.add_endpoint(shop, environment="LIVE")
    await own_api.client.patch(f"/admin/businesses/{shop.business.id}", json={"status": "RESTRICTED"}, headers=ADMIN)

    async def told(**query: Any) -> list[str]:
        return [entry["action"] for entry in (await own_api.get("/admin/audit", SUPPORT, **query))["entries"]]

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
    walked = await own_api.walked("/admin/audit", ADMIN, "entries", limit=2)
    assert sorted(entry["action"] for entry in walked) == sorted([*own, "api_key.create"])
    assert (await own_api.get("/admin/audit", ADMIN, limit=len(walked)))["hasMore"] is False
    day = "2025-01-31T12:00:00Z"
    for query, field in (
        ({"action": "gateway.explode"}, "action"),
        ({"from": day, "to": day}, "to"),
        ({"after": "aud_1"}, "after"),
    ):
        refused = await own_api.client.get("/admin/audit", headers=ADMIN, params=query)
        assert_refused(refused, 400, "VALIDATION_ERROR", field)

    answer = await own_api.client.get(f"{shop.path}/audit?businessId=x", headers=shop.as_owner)
    assert_refused(answer, 400, "VALIDATION_ERROR", "businessId")
    entries_shown = (await own_api.get(f"{shop.path}/audit", shop.as_owner))["entries"]
    assert [entry["action"] for entry in entries_shown] == own
    assert {entry["businessId"] for entry in entries_shown} == {shop.business.id}
    update, create, _ = entries_shown
    assert (update["realm"], update["address"], update["requestId"]) == ("admin", None, None)  # where operators sit
    assert update["changes"] == {"status": {"before": "ACTIVE", "after": "RESTRICTED"}}
    assert (create["realm"], create["subject"], create["address"]) == ("merchant", shop.owner, "127.0.0.1")
    assert create["requestId"]
