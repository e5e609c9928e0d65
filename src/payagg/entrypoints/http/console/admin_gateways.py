"""The administrators' gateways: life cycle, readiness, credentials that are never shown, logo, who offers it."""

from typing import Any

from litestar import Response

from payagg.application.gateways.readiness import OPEN_ATTEMPTS_MAX
from payagg.entrypoints.http.api.gateways import LOGO_BODY_MAX
from payagg.entrypoints.http.console.api import part
from payagg.entrypoints.http.console.visit import PageRequest, form, page

BASE = "/console/admin/gateways"
ONE = BASE + "/{gateway_id:str}"
API = "/admin/gateways"
SECTION = "/gateways"
OTHERS = 2  # rows of a gateway without a processor, which has no names of its own
PER_PAGE = 20


async def _list_page(visit: PageRequest) -> Response[bytes]:
    gateways = await visit.api.get(API)
    readiness = {one["id"]: await visit.api.get(f"{API}/{part(one['id'])}/readiness") for one in gateways}
    return visit.page("gateways", {"section": SECTION, "gateways": gateways, "readiness": readiness})


async def _detail_page(visit: PageRequest, tested: dict[str, Any] | None = None) -> Response[bytes]:
    """`tested`: the result of a test of the credentials."""
    path, search = _path(visit), visit.query("search")
    page_number = visit.query("page") or "1"  # the API refuses it by name
    query = {"page": page_number, "perPage": PER_PAGE, "search": search}
    merchants = await visit.api.call("GET", f"{path}/merchants", query=query)
    ready = await visit.api.get(f"{path}/readiness")
    facts = {
        "gateway": await visit.api.get(path),
        "ready": ready,
        "open_attempts_max": OPEN_ATTEMPTS_MAX,
        "merchants": merchants.data,
        "total": merchants.meta["total"],
        "has_more": int(page_number) * PER_PAGE < merchants.meta["total"],
        "number": int(page_number),
        "search": search,
        "tested": tested,
        "others": OTHERS,
    }
    return visit.page("gateway", {"section": SECTION, **facts})


listed = page(BASE, "admin")(_list_page)
shown = page(ONE, "admin")(_detail_page)


@form(BASE, "admin", back=_list_page)
async def create(visit: PageRequest) -> Response[bytes]:
    body = {name: visit.form_value(name) for name in ("slug", "name", "description")}
    made = await visit.api.post(API, {name: value for name, value in body.items() if value is not None})
    return visit.see_other(f"{BASE}/{part(made['id'])}", "gateway-created")


@form(ONE, "admin", back=_detail_page)
async def change(visit: PageRequest) -> Response[bytes]:
    order = visit.form.get("display_order", "").strip()
    # A value that is no number is passed on, and the API refuses it by name.
    body: dict[str, Any] = {"displayOrder": int(order) if order.isdecimal() and len(order) < 18 else order}
    if "name" in visit.form:
        body |= {"name": visit.form["name"].strip(), "description": visit.form_value("description")}
    await visit.api.patch(_path(visit), body)
    return _led_back(visit, "gateway-changed")


@form(ONE + "/enable", "admin", back=_detail_page)
async def enable(visit: PageRequest) -> Response[bytes]:
    await visit.api.post(f"{_path(visit)}/enable")
    return _led_back(visit, "gateway-enabled")


@form(ONE + "/disable", "admin", back=_detail_page)
async def disable(visit: PageRequest) -> Response[bytes]:
    await visit.api.post(f"{_path(visit)}/disable")
    return _led_back(visit, "gateway-draining")


@form(ONE + "/delete", "admin", back=_detail_page)
async def delete(visit: PageRequest) -> Response[bytes]:
    await visit.api.delete(_path(visit))
    return visit.see_other(BASE, "gateway-deleted")


@form(ONE + "/credentials", "admin", back=_detail_page)
async def credentials(visit: PageRequest) -> Response[bytes]:
    """An empty field keeps what is on file. The API's refusal never repeats the value."""
    sent = {visit.form.get(f"name-{row}", "").strip(): visit.form.get(f"value-{row}", "") for row in range(OTHERS)}
    for field, value in visit.form.items():
        what, _, name = field.partition(".")
        if what == "remove":
            sent[name] = ""
        elif what == "credentials" and value:
            sent[name] = value
        elif what == "was" and (is_on := str(f"switch.{name}" in visit.form).lower()) != value:
            sent[name] = is_on
    sent.pop("", None)
    await visit.api.patch(f"{_path(visit)}/credentials", {"credentials": sent, "keepOthers": True})
    return _led_back(visit, "credentials-saved")


@form(ONE + "/credentials/test", "admin", back=_detail_page)
async def test(visit: PageRequest) -> Response[bytes]:
    body = {"environment": visit.form.get("environment", "")}
    return await _detail_page(visit.at(), await visit.api.post(f"{_path(visit)}/credentials/test", body))


@form(ONE + "/end-overlap", "admin", back=_detail_page)
async def end_overlap(visit: PageRequest) -> Response[bytes]:
    await visit.api.post(f"{_path(visit)}/credentials/end-overlap")
    return _led_back(visit, "overlap-ended")


@form(ONE + "/logo", "admin", back=_detail_page, body_max=LOGO_BODY_MAX)
async def logo(visit: PageRequest) -> Response[bytes]:
    """The raw form: the API reads the file from it."""
    media_type = visit.request.headers["content-type"]
    await visit.api.call("POST", f"{_path(visit)}/logo", visit.body, media_type=media_type)
    return _led_back(visit, "logo-saved")


def _path(visit: PageRequest) -> str:
    return f"{API}/{part(visit.path['gateway_id'])}"


def _led_back(visit: PageRequest, done: str) -> Response[bytes]:
    return visit.see_other(f"{BASE}/{part(visit.path['gateway_id'])}", done)


routes = [listed, shown, create, change, enable, disable, delete, credentials, test, end_overlap, logo]
