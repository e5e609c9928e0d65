"""What a merchant's server works with, of one environment: API keys, whose secret is shown once, and webhook endpoints
with their tests and delivery logs."""

from dataclasses import replace
from typing import Any

from litestar import Response

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.webhook import EventType
from payagg.extensions.console.api import ApiRefused, part
from payagg.extensions.console.page_request import BASE, BusinessContext, PageRequest, Pages, business_context

routes = Pages("merchant")


@routes.page(BASE + "/keys")
async def _keys_page(request: PageRequest, made: dict[str, Any] | None = None) -> Response[bytes]:
    context = await business_context(request)
    keys = None
    try:
        keys = (await request.api.get(f"{context.api}/api-keys"))[context.name]
    except ApiRefused as refused:  # the API lists no keys of an inactive business
        if refused.status != 403:
            raise
        request = replace(request, problem=request.problem or refused)
    return request.page("keys", {"context": context, "section": "/keys", "keys": keys, "made": made})


@routes.form(BASE + "/keys", back=_keys_page)
async def create_key(request: PageRequest) -> Response[bytes]:
    """The answer itself shows the secret: it is not stored, so no later page could show it."""
    context = await business_context(request)
    body = {"environment": context.environment, "name": request.form.get("name", "").strip()}
    return await _keys_page(request, await request.api.post(f"{context.api}/api-keys", body))


routes.action(
    BASE + "/keys/{key_id:str}/revoke",
    "DELETE /merchant/businesses/{business_id}/api-keys/{key_id}",
    "/console/business/{business_id}/{environment}/keys",
    "key-revoked",
    back=_keys_page,
)


ONE = BASE + "/webhooks/{endpoint_id:str}"

PER_PAGE = 20
EVENT_NAMES = [kind.value for kind in EventType]


@routes.page(BASE + "/webhooks")
async def _list_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    facts = {"endpoints": await _endpoints(request, context), "endpoint": None, "event_names": EVENT_NAMES}
    return request.page("webhooks", {"context": context, "section": "/webhooks", **facts})


@routes.page(ONE)
async def _detail_page(
    request: PageRequest,
    *,
    secret: str | None = None,
    is_rotated: bool = False,
    tested: dict[str, Any] | None = None,
) -> Response[bytes]:
    """`secret` and `tested` are shown only by the answer to their form."""
    context = await business_context(request)
    endpoint = await _endpoint(request, context, request.path["endpoint_id"])
    after = request.query("after")
    found = await request.api.get(f"{_path(context, endpoint['id'])}/deliveries", after=after, perPage=PER_PAGE + 1)
    shown = found[:PER_PAGE]
    facts = {
        "endpoint": endpoint,
        "deliveries": shown,
        "is_live": any(one["status"] == "PENDING" for one in shown),
        "kept": f"?after={part(after)}" if after else "",
        "older": shown[-1]["id"] if len(found) > PER_PAGE else None,
        "secret": secret,
        "is_rotated": is_rotated,
        "tested": tested,
        "event_names": EVENT_NAMES,
    }
    return request.page("webhook", {"context": context, "section": "/webhooks", **facts})


@routes.form(BASE + "/webhooks", back=_list_page)
async def create_endpoint(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    body = {**_fields(request), "environment": context.environment}
    made = await request.api.post(f"{context.api}/webhooks", body)
    request = request.at(endpoint_id=made["id"])
    return await _detail_page(request, secret=made["signingSecret"])


@routes.form(ONE, back=_detail_page)
async def change(request: PageRequest) -> Response[bytes]:
    context, path = await _own(request)
    inputs = {"events": [f"event:{name}" for name in EVENT_NAMES]}
    fields = _fields(request).items()
    body = {name: value for name, value in fields if any(map(request.has_changed, inputs.get(name, [name])))}
    await request.api.patch(path, body)
    return _led_back(request, context, "webhook-changed")


@routes.form(ONE + "/test", back=_detail_page)
async def test_endpoint(request: PageRequest) -> Response[bytes]:
    _, path = await _own(request)
    return await _detail_page(request, tested=await request.api.post(f"{path}/test"))


@routes.form(ONE + "/rotate", back=_detail_page)
async def rotate(request: PageRequest) -> Response[bytes]:
    _, path = await _own(request)
    made = await request.api.post(f"{path}/rotate-secret")
    return await _detail_page(request, secret=made["signingSecret"], is_rotated=True)


@routes.form(ONE + "/deactivate", back=_detail_page)
async def deactivate(request: PageRequest) -> Response[bytes]:
    context, path = await _own(request)
    await request.api.delete(path)
    return _led_back(request, context, "webhook-off")


@routes.form(ONE + "/activate", back=_detail_page)
async def activate(request: PageRequest) -> Response[bytes]:
    context, path = await _own(request)
    await request.api.patch(path, {"isActive": True})
    return _led_back(request, context, "webhook-on")


@routes.form(ONE + "/deliveries/{delivery_id:str}/redeliver", back=_detail_page)
async def redeliver(request: PageRequest) -> Response[bytes]:
    context, path = await _own(request)
    await request.api.post(f"{path}/deliveries/{part(request.path['delivery_id'])}/redeliver")
    return _led_back(request, context, "redelivered")


async def _endpoints(request: PageRequest, context: BusinessContext) -> list[dict[str, Any]]:
    found = await request.api.get(f"{context.api}/webhooks")
    return [one for one in found if one["environment"] == context.environment]


async def _endpoint(request: PageRequest, context: BusinessContext, endpoint_id: str) -> dict[str, Any]:
    """Only of this environment; raises NOT_FOUND."""
    for one in await _endpoints(request, context):
        if one["id"] == endpoint_id:
            return one
    raise Refusal(ErrorCode.NOT_FOUND)


async def _own(request: PageRequest) -> tuple[BusinessContext, str]:
    """The context, and the API's path of the endpoint that the address names; raises NOT_FOUND for one of the other
    environment."""
    context = await business_context(request)
    return context, _path(context, (await _endpoint(request, context, request.path["endpoint_id"]))["id"])


def _path(context: BusinessContext, endpoint_id: str) -> str:
    return f"{context.api}/webhooks/{part(endpoint_id)}"


def _fields(request: PageRequest) -> dict[str, Any]:
    chosen = [name for name in EVENT_NAMES if f"event:{name}" in request.form]
    return {
        "url": request.form.get("url", "").strip(),
        "description": request.form_value("description"),
        "events": chosen,
    }


def _led_back(request: PageRequest, context: BusinessContext, done: str) -> Response[bytes]:
    return request.see_other(f"{context.url}/webhooks/{part(request.path['endpoint_id'])}", done)
