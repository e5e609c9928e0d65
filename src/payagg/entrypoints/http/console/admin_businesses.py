"""The administrators' businesses: search, KYC, status, members."""

from urllib.parse import urlencode

from litestar import Response

from payagg.domain.business import KYC, BusinessStatus, KycStatus, Role
from payagg.entrypoints.http.console.api import part
from payagg.entrypoints.http.console.visit import PageRequest, form, page

BASE = "/console/admin/businesses"
ONE = BASE + "/{business_id:str}"
API = "/admin/businesses"
SECTION = "/businesses"


async def _list_page(visit: PageRequest) -> Response[bytes]:
    search = visit.query("search")
    found = await visit.api.get(API, search=search, after=visit.query("after"))
    older = urlencode({"search": search, "after": found["nextCursor"]}) if found["hasMore"] else None
    facts = {"businesses": found["businesses"], "search": search, "next": f"?{older}" if older else None}
    return visit.page("businesses", {"section": SECTION, **facts})


async def _detail_page(visit: PageRequest) -> Response[bytes]:
    business = await visit.api.get(_path(visit))
    kyc = KycStatus(business["kycStatus"])
    facts = {
        "business": business,
        "kyc_moves": [target.value for (status, _), target in KYC.moves.items() if status is kyc],
        "statuses": [status.value for status in BusinessStatus],
        "roles": [role.value for role in Role],
    }
    return visit.page("business", {"section": SECTION, **facts})


listed = page(BASE, "admin")(_list_page)
shown = page(ONE, "admin")(_detail_page)


@form(BASE, "admin", back=_list_page)
async def create(visit: PageRequest) -> Response[bytes]:
    made = await visit.api.post(API, {name: visit.form.get(name, "").strip() for name in ("name", "owner")})
    return visit.see_other(f"{BASE}/{part(made['id'])}", "business-created")


@form(ONE, "admin", back=_detail_page)
async def change(visit: PageRequest) -> Response[bytes]:
    await visit.api.patch(
        _path(visit), {"kycStatus": visit.form_value("kyc_status"), "status": visit.form_value("status")}
    )
    return _back_to_business(visit, "business-changed")


@form(ONE + "/members", "admin", back=_detail_page)
async def set_member(visit: PageRequest) -> Response[bytes]:
    body = {"subject": visit.form.get("subject", "").strip(), "role": visit.form.get("role", "")}
    await visit.api.post(f"{_path(visit)}/members", body)
    return _back_to_business(visit, "member-set")


@form(ONE + "/members/remove", "admin", back=_detail_page)
async def remove_member(visit: PageRequest) -> Response[bytes]:
    await visit.api.post(f"{_path(visit)}/members/remove", {"subject": visit.form.get("subject", "")})
    return _back_to_business(visit, "member-removed")


def _path(visit: PageRequest) -> str:
    return f"{API}/{part(visit.path['business_id'])}"


def _back_to_business(visit: PageRequest, done: str) -> Response[bytes]:
    return visit.see_other(f"{BASE}/{part(visit.path['business_id'])}", done)


routes = [listed, shown, create, change, set_member, remove_member]
