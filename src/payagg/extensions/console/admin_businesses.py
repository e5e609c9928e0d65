"""The administrators' businesses: search, KYC, status, members."""

from urllib.parse import urlencode

from litestar import Response

from payagg.domain.business import KYC, BusinessStatus, KycStatus, Role
from payagg.extensions.console.api import part
from payagg.extensions.console.page_request import PageRequest, form, page

BASE = "/console/admin/businesses"
ONE = BASE + "/{business_id:str}"
API = "/admin/businesses"
SECTION = "/businesses"


async def _list_page(request: PageRequest) -> Response[bytes]:
    search = request.query("search")
    found = await request.api.get(API, search=search, after=request.query("after"))
    older = urlencode({"search": search, "after": found["nextCursor"]}) if found["hasMore"] else None
    facts = {"businesses": found["businesses"], "search": search, "next": f"?{older}" if older else None}
    return request.page("businesses", {"section": SECTION, **facts})


async def _detail_page(request: PageRequest) -> Response[bytes]:
    business = await request.api.get(_path(request))
    kyc = KycStatus(business["kycStatus"])
    facts = {
        "business": business,
        "kyc_moves": [target.value for (status, _), target in KYC.moves.items() if status is kyc],
        "statuses": [status.value for status in BusinessStatus],
        "roles": [role.value for role in Role],
    }
    return request.page("business", {"section": SECTION, **facts})


listed = page(BASE, "admin")(_list_page)
shown = page(ONE, "admin")(_detail_page)


@form(BASE, "admin", back=_list_page)
async def create(request: PageRequest) -> Response[bytes]:
    made = await request.api.post(API, {name: request.form.get(name, "").strip() for name in ("name", "owner")})
    return request.see_other(f"{BASE}/{part(made['id'])}", "business-created")


@form(ONE, "admin", back=_detail_page)
async def change(request: PageRequest) -> Response[bytes]:
    await request.api.patch(
        _path(request),
        {"kycStatus": request.form_value("kyc_status"), "status": request.form_value("status")},
    )
    return _back_to_business(request, "business-changed")


@form(ONE + "/members", "admin", back=_detail_page)
async def set_member(request: PageRequest) -> Response[bytes]:
    body = {"subject": request.form.get("subject", "").strip(), "role": request.form.get("role", "")}
    await request.api.post(f"{_path(request)}/members", body)
    return _back_to_business(request, "member-set")


@form(ONE + "/members/remove", "admin", back=_detail_page)
async def remove_member(request: PageRequest) -> Response[bytes]:
    await request.api.post(f"{_path(request)}/members/remove", {"subject": request.form.get("subject", "")})
    return _back_to_business(request, "member-removed")


def _path(request: PageRequest) -> str:
    return f"{API}/{part(request.path['business_id'])}"


def _back_to_business(request: PageRequest, done: str) -> Response[bytes]:
    return request.see_other(f"{BASE}/{part(request.path['business_id'])}", done)


routes = [listed, shown, create, change, set_member, remove_member]
