"""A business's webhook endpoints of one environment, their tests and their delivery logs."""

from typing import Any

from litestar import Response

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.webhook import EventType
from payagg.entrypoints.http.console.api import part
from payagg.entrypoints.http.console.place import BASE, BusinessContext, business_context
from payagg.entrypoints.http.console.visit import PageRequest, form, page

ONE = BASE + "/webhooks/{endpoint_id:str}"
SECTION = "/webhooks"
PER_PAGE = 20
EVENT_NAMES = [kind.value for kind in EventType]


async def _list_page(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    facts = {"endpoints": await _endpoints(visit, place), "endpoint": None, "event_names": EVENT_NAMES}
    return visit.page("webhooks", {"place": place, "section": SECTION, **facts})


async def _detail_page(
    visit: PageRequest, *, secret: str | None = None, is_rotated: bool = False, tested: dict[str, Any] | None = None
) -> Response[bytes]:
    """`secret` and `tested` are shown only by the answer to their form."""
    place = await business_context(visit)
    endpoint = await _endpoint(visit, place, visit.path["endpoint_id"])
    page_number = visit.query("page") or "1"  # the API refuses it by name
    query = {"page": page_number, "perPage": PER_PAGE}
    answer = await visit.api.call("GET", f"{_path(place, endpoint['id'])}/deliveries", query=query)
    facts = {
        "endpoint": endpoint,
        "deliveries": answer.data,
        "number": int(page_number),
        "has_more": int(page_number) * PER_PAGE < answer.meta["total"],
        "is_live": any(one["status"] == "PENDING" for one in answer.data),
        "secret": secret,
        "is_rotated": is_rotated,
        "tested": tested,
        "event_names": EVENT_NAMES,
    }
    return visit.page("webhook", {"place": place, "section": SECTION, **facts})


listed = page(BASE + "/webhooks", "merchant")(_list_page)
shown = page(ONE, "merchant")(_detail_page)


@form(BASE + "/webhooks", "merchant", back=_list_page)
async def create(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    body = {**_fields(visit), "environment": place.environment}
    made = await visit.api.post(f"{place.api}/webhooks", body)
    visit = visit.at(endpoint_id=made["id"])
    return await _detail_page(visit, secret=made["signingSecret"])


@form(ONE, "merchant", back=_detail_page)
async def change(visit: PageRequest) -> Response[bytes]:
    place, path = await _own(visit)
    await visit.api.patch(path, _fields(visit))
    return _led_back(visit, place, "webhook-changed")


@form(ONE + "/test", "merchant", back=_detail_page)
async def test(visit: PageRequest) -> Response[bytes]:
    _, path = await _own(visit)
    return await _detail_page(visit, tested=await visit.api.post(f"{path}/test"))


@form(ONE + "/rotate", "merchant", back=_detail_page)
async def rotate(visit: PageRequest) -> Response[bytes]:
    _, path = await _own(visit)
    made = await visit.api.post(f"{path}/rotate-secret")
    return await _detail_page(visit, secret=made["signingSecret"], is_rotated=True)


@form(ONE + "/deactivate", "merchant", back=_detail_page)
async def deactivate(visit: PageRequest) -> Response[bytes]:
    place, path = await _own(visit)
    await visit.api.delete(path)
    return _led_back(visit, place, "webhook-off")


@form(ONE + "/activate", "merchant", back=_detail_page)
async def activate(visit: PageRequest) -> Response[bytes]:
    place, path = await _own(visit)
    await visit.api.patch(path, {"isActive": True})
    return _led_back(visit, place, "webhook-on")


@form(ONE + "/deliveries/{delivery_id:str}/redeliver", "merchant", back=_detail_page)
async def redeliver(visit: PageRequest) -> Response[bytes]:
    place, path = await _own(visit)
    await visit.api.post(f"{path}/deliveries/{part(visit.path['delivery_id'])}/redeliver")
    return _led_back(visit, place, "redelivered")


async def _endpoints(visit: PageRequest, place: BusinessContext) -> list[dict[str, Any]]:
    found = await visit.api.get(f"{place.api}/webhooks")
    return [one for one in found if one["environment"] == place.environment]


async def _endpoint(visit: PageRequest, place: BusinessContext, endpoint_id: str) -> dict[str, Any]:
    """Only of this environment; raises NOT_FOUND."""
    for one in await _endpoints(visit, place):
        if one["id"] == endpoint_id:
            return one
    raise Refusal(ErrorCode.NOT_FOUND)


async def _own(visit: PageRequest) -> tuple[BusinessContext, str]:
    """The place, and the API's path of the endpoint that the address names; raises NOT_FOUND for one of the other
    environment."""
    place = await business_context(visit)
    return place, _path(place, (await _endpoint(visit, place, visit.path["endpoint_id"]))["id"])


def _path(place: BusinessContext, endpoint_id: str) -> str:
    return f"{place.api}/webhooks/{part(endpoint_id)}"


def _fields(visit: PageRequest) -> dict[str, Any]:
    chosen = [name for name in EVENT_NAMES if f"event:{name}" in visit.form]
    return {"url": visit.form.get("url", "").strip(), "description": visit.form_value("description"), "events": chosen}


def _led_back(visit: PageRequest, place: BusinessContext, done: str) -> Response[bytes]:
    return visit.see_other(f"{place.url}/webhooks/{part(visit.path['endpoint_id'])}", done)


routes = [listed, shown, create, change, test, rotate, deactivate, activate, redeliver]
