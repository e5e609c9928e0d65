"""The administrators' businesses: search, KYC, status, members."""

from typing import Any
from urllib.parse import urlencode

from litestar import Response

from payagg.domain.business import KYC, BusinessStatus, KycStatus, Role
from payagg.extensions.console.api import part
from payagg.extensions.console.page_request import PageRequest, Pages

routes = Pages("admin")
BASE = "/console/admin/businesses"
ONE = BASE + "/{business_id:str}"
API = "/admin/businesses"
PAGE, API_ONE = BASE + "/{business_id}", API + "/{business_id}"
SECTION = "/businesses"


@routes.page(BASE)
async def _list_page(request: PageRequest) -> Response[bytes]:
    search = request.query("search")
    found = await request.api.get(API, search=search, after=request.query("after"))
    older = urlencode({"search": search, "after": found["nextCursor"]}) if found["hasMore"] else None
    facts = {"businesses": found["businesses"], "search": search, "next": f"?{older}" if older else None}
    return request.page("businesses", {"section": SECTION, **facts})


@routes.page(ONE)
async def _detail_page(request: PageRequest) -> Response[bytes]:
    business = await request.api.get(f"{API}/{part(request.path['business_id'])}")
    kyc = KycStatus(business["kycStatus"])
    facts = {
        "business": business,
        "kyc_moves": [target.value for (status, _), target in KYC.moves.items() if status is kyc],
        "statuses": [status.value for status in BusinessStatus],
        "roles": [role.value for role in Role],
    }
    return request.page("business", {"section": SECTION, **facts})


@routes.form(BASE, back=_list_page)
async def create(request: PageRequest) -> Response[bytes]:
    made = await request.api.post(API, {name: request.form.get(name, "").strip() for name in ("name", "owner")})
    return request.see_other(f"{BASE}/{part(made['id'])}", "business-created")


def _changed(request: PageRequest) -> Any:
    return {"kycStatus": request.form_value("kyc_status"), "status": request.form_value("status")}


def _member(request: PageRequest) -> Any:
    return {"subject": request.form.get("subject", "").strip(), "role": request.form.get("role", "")}


def _removed(request: PageRequest) -> Any:
    return {"subject": request.form.get("subject", "")}


routes.action(ONE, f"PATCH {API_ONE}", PAGE, "business-changed", back=_detail_page, body=_changed)
members = f"POST {API_ONE}/members"
routes.action(ONE + "/members", members, PAGE, "member-set", back=_detail_page, body=_member)
routes.action(ONE + "/members/remove", f"{members}/remove", PAGE, "member-removed", back=_detail_page, body=_removed)
