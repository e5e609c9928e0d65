"""A business's API keys of one environment: list, create with the secret shown once, revoke."""

from dataclasses import replace
from typing import Any

from litestar import Response

from payagg.extensions.console.api import ApiRefused, part
from payagg.extensions.console.business_context import BASE, business_context
from payagg.extensions.console.page_request import PageRequest, form, page


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


@page(BASE + "/keys", "merchant")
async def keys(request: PageRequest) -> Response[bytes]:
    return await _keys_page(request)


@form(BASE + "/keys", "merchant", back=_keys_page)
async def create(request: PageRequest) -> Response[bytes]:
    """The answer itself shows the secret: it is not stored, so no later page could show it."""
    context = await business_context(request)
    body = {"environment": context.environment, "name": request.form.get("name", "").strip()}
    return await _keys_page(request, await request.api.post(f"{context.api}/api-keys", body))


@form(BASE + "/keys/{key_id:str}/revoke", "merchant", back=_keys_page)
async def revoke(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    await request.api.delete(f"{context.api}/api-keys/{part(request.path['key_id'])}")
    return request.see_other(f"{context.url}/keys", "key-revoked")


routes = [keys, create, revoke]
