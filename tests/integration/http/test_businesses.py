"""Businesses, KYC and members through /admin/businesses: the same use cases as the command's."""

import asyncio
from typing import Any

import pytest

from tests.support.http_world import Api, admin_token, assert_refused, bearer, merchant_token

ADMIN = bearer(admin_token())
BASE = "/admin/businesses"


async def created(api: Api, **body: Any) -> Any:
    answer = await api.client.post(BASE, json={"name": "Ada's", "owner": "ada", **body}, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


@pytest.mark.rule("POST /admin/businesses", "GET /admin/businesses/{businessId}")
@pytest.mark.rule("PATCH /admin/businesses/{businessId}", "GET /merchant/businesses/{businessId}", "keys.5")
async def test_a_business_from_creation_to_approval(api: Api) -> None:
    made = await created(api)
    assert made == {
        "id": made["id"],
        "name": "Ada's",
        "status": "ACTIVE",
        "kycStatus": "NOT_SUBMITTED",
        "createdAt": made["createdAt"],
        "members": [{"subject": "ada", "role": "OWNER"}],
    }
    path = f"{BASE}/{made['id']}"
    machine = await api.client.patch(path, json={"kycStatus": "APPROVED", "status": "SUSPENDED"}, headers=ADMIN)
    assert_refused(machine, 400, "VALIDATION_ERROR", "kycStatus")
    assert await api.get(path, ADMIN) == made
    for kyc in ("PENDING", "UNDER_REVIEW", "APPROVED"):
        assert (await api.client.patch(path, json={"kycStatus": kyc}, headers=ADMIN)).json()["data"]["kycStatus"] == kyc
    owner = bearer(merchant_token("ada"))
    live = {"environment": "LIVE", "name": "Till"}
    keys = f"/merchant/businesses/{made['id']}/api-keys"
    assert (await api.client.post(keys, json=live, headers=owner)).status_code == 201
    await api.client.patch(path, json={"status": "SUSPENDED"}, headers=ADMIN)
    assert_refused(await api.client.post(keys, json=live, headers=owner), 403, "BUSINESS_RESTRICTED")
    shown = await api.get(path, ADMIN)
    assert (shown["status"], shown["kycStatus"]) == ("SUSPENDED", "APPROVED")
    own = await api.client.get(f"/merchant/businesses/{made['id']}", headers=owner)
    assert own.json()["data"] == {name: value for name, value in shown.items() if name != "members"}


@pytest.mark.rule("LAST_OWNER", "GET /merchant/businesses", "GET /admin/businesses/{businessId}/members")
@pytest.mark.rule("POST /admin/businesses/{businessId}/members", "POST /admin/businesses/{businessId}/members/remove")
async def test_members_come_and_go_and_the_last_owner_stays_whoever_is_quicker(api: Api) -> None:
    made = await created(api)
    members = f"{BASE}/{made['id']}/members"
    odd = "https://issuer.example/user|7 \u00e9"
    for role in ("MEMBER", "ADMIN"):
        done = await api.client.post(members, json={"subject": odd, "role": role}, headers=ADMIN)
        assert done.json()["data"] == {"subject": odd, "role": role}
        told = await api.client.get("/merchant/businesses", headers=bearer(merchant_token(odd)))
        managed = [(one["id"], one["role"]) for one in told.json()["data"]["businesses"]]
        assert managed == ([(made["id"], "ADMIN")] if role == "ADMIN" else [])
    assert (await api.get(members, ADMIN)) == [{"subject": "ada", "role": "OWNER"}, {"subject": odd, "role": "ADMIN"}]
    for status in (200, 404):
        assert (await api.client.post(f"{members}/remove", json={"subject": odd}, headers=ADMIN)).status_code == status
    alone = await api.client.post(members, json={"subject": "ada", "role": "ADMIN"}, headers=ADMIN)
    assert_refused(alone, 409, "LAST_OWNER")
    assert_refused(
        await api.client.post(f"{members}/remove", json={"subject": "ada"}, headers=ADMIN), 409, "LAST_OWNER"
    )
    await api.client.post(members, json={"subject": "bo", "role": "OWNER"}, headers=ADMIN)
    answers = await asyncio.gather(
        *(api.client.post(f"{members}/remove", json={"subject": one}, headers=ADMIN) for one in ("ada", "bo") * 4)
    )
    assert sorted(answer.status_code for answer in answers)[0] == 200
    assert sum(answer.status_code == 200 for answer in answers) == 1
    left = await api.get(members, ADMIN)
    assert [member["role"] for member in left] == ["OWNER"]


@pytest.mark.rule("GET /admin/businesses")
async def test_businesses_are_searched_literally_and_walked_newest_first(api: Api) -> None:
    made = [(await created(api, name=f"100% \ufffd Fresh {number}"))["id"] for number in range(3)]
    found = await api.walked(BASE, ADMIN, "businesses", search="0% \ufffd fresh", limit=2)
    assert [one["id"] for one in found] == made[::-1]
    assert "members" not in found[0]


@pytest.mark.rule("GET /merchant/businesses/{businessId}/members")
async def test_a_manager_reads_the_team_of_the_own_business_and_of_no_other(api: Api) -> None:
    made, other = await created(api), await created(api, owner="bo")
    await api.client.post(f"{BASE}/{made['id']}/members", json={"subject": "cy", "role": "MEMBER"}, headers=ADMIN)
    path = "/merchant/businesses/{}/members"
    team = await api.client.get(path.format(made["id"]), headers=bearer(merchant_token("ada")))
    assert team.json()["data"] == [{"subject": "ada", "role": "OWNER"}, {"subject": "cy", "role": "MEMBER"}]
    for subject, business in (("cy", made), ("ada", other), ("bo", made)):
        refused = await api.client.get(path.format(business["id"]), headers=bearer(merchant_token(subject)))
        assert_refused(refused, 403, "FORBIDDEN")
