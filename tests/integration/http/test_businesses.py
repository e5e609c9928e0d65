"""Businesses, KYC and members through /admin/businesses: the same use cases as the command's."""

from typing import Any

import httpx
import pytest

from tests.support.http_world import Api, admin_token, assert_refused, bearer, merchant_token

ADMIN = bearer(admin_token())
BASE = "/admin/businesses"


async def created(api: Api, **body: Any) -> Any:
    return await api.send("POST", BASE, ADMIN, **{"name": "Ada's", "owner": "ada", **body})


@pytest.mark.rule("POST /admin/businesses", "GET /admin/businesses/{businessId}")
@pytest.mark.rule("PATCH /admin/businesses/{businessId}", "GET /merchant/businesses/{businessId}", "keys.5")
async def test_a_business_from_creation_to_approval(api: Api) -> None:
    for wrong, field in (({"name": " "}, "name"), ({"name": "a\nb"}, "name"), ({"owner": "\t"}, "owner")):
        refused = await api.client.post(BASE, json={"name": "A", "owner": "ada", **wrong}, headers=ADMIN)
        assert_refused(refused, 400, "VALIDATION_ERROR", field)
    made = await created(api)
    assert made == {
        **{"id": made["id"], "name": "Ada's", "status": "ACTIVE", "kycStatus": "NOT_SUBMITTED"},
        **{"createdAt": made["createdAt"], "members": [{"subject": "ada", "role": "OWNER"}]},
    }
    path = f"{BASE}/{made['id']}"
    machine = await api.client.patch(path, json={"kycStatus": "APPROVED", "status": "SUSPENDED"}, headers=ADMIN)
    assert_refused(machine, 400, "VALIDATION_ERROR", "kycStatus")
    assert await api.get(path, ADMIN) == made
    for kyc in ("PENDING", "UNDER_REVIEW", "APPROVED"):
        assert (await api.send("PATCH", path, ADMIN, kycStatus=kyc))["kycStatus"] == kyc
    owner = bearer(merchant_token("ada"))
    live = {"environment": "LIVE", "name": "Till"}
    keys = f"/merchant/businesses/{made['id']}/api-keys"
    await api.send("POST", keys, owner, **live)
    await api.send("PATCH", path, ADMIN, status="SUSPENDED")
    assert_refused(await api.client.post(keys, json=live, headers=owner), 403, "BUSINESS_RESTRICTED")
    shown = await api.get(path, ADMIN)
    assert (shown["status"], shown["kycStatus"]) == ("SUSPENDED", "APPROVED")
    own = await api.get(f"/merchant/businesses/{made['id']}", owner)
    assert own == {name: value for name, value in shown.items() if name != "members"}


@pytest.mark.rule("LAST_OWNER", "GET /merchant/businesses", "GET /merchant/businesses/{businessId}/members")
@pytest.mark.rule("POST /admin/businesses/{businessId}/members", "POST /admin/businesses/{businessId}/members/remove")
async def test_members_come_and_go_and_the_last_owner_stays(api: Api) -> None:
    made = await created(api)
    one = f"{BASE}/{made['id']}"
    members = f"{one}/members"
    odd = "https://issuer.example/user|7 \u00e9"
    for role in ("MEMBER", "ADMIN"):
        member = {"subject": odd, "role": role}
        assert await api.send("POST", members, ADMIN, **member) == member
        told = await api.get("/merchant/businesses", bearer(merchant_token(odd)))
        managed = [(mine["id"], mine["role"]) for mine in told["businesses"]]
        assert managed == ([(made["id"], "ADMIN")] if role == "ADMIN" else [])
    listed = (await api.get(one, ADMIN))["members"]
    assert listed == [{"subject": "ada", "role": "OWNER"}, {"subject": odd, "role": "ADMIN"}]
    team = f"/merchant/businesses/{made['id']}/members"
    assert await api.get(team, bearer(merchant_token("ada"))) == listed

    async def removed(subject: str) -> httpx.Response:
        return await api.client.post(f"{members}/remove", json={"subject": subject}, headers=ADMIN)

    assert [(await removed(odd)).status_code for _ in range(2)] == [200, 404]
    nobody, member = f"{BASE}/biz_none", {"subject": "bo", "role": "ADMIN"}
    for method, path, body in (
        ("GET", nobody, None),
        ("PATCH", nobody, {"status": "ACTIVE"}),
        ("POST", f"{nobody}/members", member),
    ):
        assert_refused(await api.client.request(method, path, json=body, headers=ADMIN), 404, "NOT_FOUND")
    alone = await api.client.post(members, json={"subject": "ada", "role": "ADMIN"}, headers=ADMIN)
    for answer in (alone, await removed("ada")):
        assert_refused(answer, 409, "LAST_OWNER")
    await api.send("POST", members, ADMIN, subject="bo", role="OWNER")
    assert (await removed("ada")).status_code == 200
    assert (await api.get(one, ADMIN))["members"] == [{"subject": "bo", "role": "OWNER"}]


@pytest.mark.rule("GET /admin/businesses")
async def test_businesses_are_searched_literally_and_walked_newest_first(api: Api) -> None:
    made = [(await created(api, name=f"100% \ufffd Fresh {number}"))["id"] for number in range(3)]
    found = await api.walked(BASE, ADMIN, "businesses", search="0% \ufffd fresh", limit=2)
    assert [one["id"] for one in found] == made[::-1]
    wrong = await api.client.get(BASE, headers=ADMIN, params={"after": "biz_1"})
    assert_refused(wrong, 400, "VALIDATION_ERROR", "after")
    assert "members" not in found[0]
