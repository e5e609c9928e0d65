"""A business's API keys of one environment: list, create with the secret shown once, revoke."""

from dataclasses import replace
from typing import Any

from litestar import Response

from payagg.extensions.console.api import ApiRefused
from payagg.extensions.console.page_request import BASE, PageRequest, Pages, business_context

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
async def create(request: PageRequest) -> Response[bytes]:
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
