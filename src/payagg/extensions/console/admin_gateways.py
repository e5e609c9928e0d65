"""The administrators' gateways: life cycle, readiness, credentials that are never shown, logo, who offers it."""

from typing import Any

from litestar import Response

from payagg.application.gateways.readiness import OPEN_ATTEMPTS_MAX
from payagg.entrypoints.http.api.gateways import LOGO_BODY_MAX
from payagg.extensions.console.api import part
from payagg.extensions.console.page_request import PageRequest, Pages

routes = Pages("admin")
BASE = "/console/admin/gateways"
ONE = BASE + "/{gateway_id:str}"
API = "/admin/gateways"
PAGE, API_ONE = BASE + "/{gateway_id}", API + "/{gateway_id}"
SECTION = "/gateways"
PER_PAGE = 20


@routes.page(BASE)
async def _list_page(request: PageRequest) -> Response[bytes]:
    gateways = await request.api.get(API)
    readiness = {one["id"]: await request.api.get(f"{API}/{part(one['id'])}/readiness") for one in gateways}
    return request.page("gateways", {"section": SECTION, "gateways": gateways, "readiness": readiness})


@routes.page(ONE)
async def _detail_page(request: PageRequest, tested: dict[str, Any] | None = None) -> Response[bytes]:
    """`tested`: the result of a test of the credentials."""
    path, search = _path(request), request.query("search")
    page_number = request.query("page") or "1"  # the API refuses it by name
    query = {"page": page_number, "perPage": PER_PAGE, "search": search}
    merchants = await request.api.call("GET", f"{path}/merchants", query=query)
    ready = await request.api.get(f"{path}/readiness")
    facts = {
        "gateway": await request.api.get(path),
        "ready": ready,
        "open_attempts_max": OPEN_ATTEMPTS_MAX,
        "merchants": merchants.data,
        "total": merchants.meta["total"],
        "has_more": int(page_number) * PER_PAGE < merchants.meta["total"],
        "number": int(page_number),
        "search": search,
        "tested": tested,
    }
    return request.page("gateway", {"section": SECTION, **facts})


@routes.form(BASE, back=_list_page)
async def create(request: PageRequest) -> Response[bytes]:
    body = {name: request.form_value(name) for name in ("slug", "name", "description")}
    made = await request.api.post(API, {name: value for name, value in body.items() if value is not None})
    return request.see_other(f"{BASE}/{part(made['id'])}", "gateway-created")


@routes.form(ONE, back=_detail_page)
async def change(request: PageRequest) -> Response[bytes]:
    order = request.form.get("display_order", "").strip()
    # A value that is no number is passed on, and the API refuses it by name.
    fields = {
        "display_order": ("displayOrder", int(order) if order.isdecimal() and len(order) < 18 else order),
        "name": ("name", request.form.get("name", "").strip()),
        "description": ("description", request.form_value("description")),
    }
    body = {
        field: value for name, (field, value) in fields.items() if name in request.form and request.has_changed(name)
    }
    await request.api.patch(_path(request), body)
    return _led_back(request, "gateway-changed")


routes.action(ONE + "/enable", f"POST {API_ONE}/enable", PAGE, "gateway-enabled", back=_detail_page)
routes.action(ONE + "/disable", f"POST {API_ONE}/disable", PAGE, "gateway-draining", back=_detail_page)
routes.action(ONE + "/delete", f"DELETE {API_ONE}", BASE, "gateway-deleted", back=_detail_page)
routes.action(ONE + "/end-overlap", f"POST {API_ONE}/credentials/end-overlap", PAGE, "overlap-ended", back=_detail_page)


@routes.form(ONE + "/credentials", back=_detail_page)
async def credentials(request: PageRequest) -> Response[bytes]:
    """An empty field keeps what is on file. The API's refusal never repeats the value."""
    sent = dict[str, str]()
    for field, value in request.form.items():
        what, _, name = field.partition(".")
        if what == "remove":
            sent[name] = ""
        elif what == "credentials" and value:
            sent[name] = value
        elif what == "was" and (is_on := str(f"switch.{name}" in request.form).lower()) != value:
            sent[name] = is_on
    await request.api.patch(f"{_path(request)}/credentials", {"credentials": sent, "keepOthers": True})
    return _led_back(request, "credentials-saved")


@routes.form(ONE + "/credentials/test", back=_detail_page)
async def test(request: PageRequest) -> Response[bytes]:
    body = {"environment": request.form.get("environment", "")}
    return await _detail_page(request.at(), await request.api.post(f"{_path(request)}/credentials/test", body))


@routes.form(ONE + "/logo", back=_detail_page, body_max=LOGO_BODY_MAX)
async def logo(request: PageRequest) -> Response[bytes]:
    """The raw form: the API reads the file from it."""
    media_type = request.request.headers["content-type"]
    await request.api.call("POST", f"{_path(request)}/logo", request.body, media_type=media_type)
    return _led_back(request, "logo-saved")


def _path(request: PageRequest) -> str:
    return f"{API}/{part(request.path['gateway_id'])}"


def _led_back(request: PageRequest, done: str) -> Response[bytes]:
    return request.see_other(f"{BASE}/{part(request.path['gateway_id'])}", done)
