"""A business's API keys of one environment: list, create with the secret shown once, revoke."""

from dataclasses import replace
from typing import Any

from litestar import Response

from payagg.entrypoints.http.console.api import ApiRefused, part
from payagg.entrypoints.http.console.place import BASE, business_context
from payagg.entrypoints.http.console.visit import PageRequest, form, page


async def _keys_page(visit: PageRequest, made: dict[str, Any] | None = None) -> Response[bytes]:
    place = await business_context(visit)
    keys = None
    try:
        keys = (await visit.api.get(f"{place.api}/api-keys"))[place.name]
    except ApiRefused as refused:  # the API lists no keys of an inactive business
        if refused.status != 403:
            raise
        visit = replace(visit, problem=visit.problem or refused)
    return visit.page("keys", {"place": place, "section": "/keys", "keys": keys, "made": made})


@page(BASE + "/keys", "merchant")
async def keys(visit: PageRequest) -> Response[bytes]:
    return await _keys_page(visit)


@form(BASE + "/keys", "merchant", back=_keys_page)
async def create(visit: PageRequest) -> Response[bytes]:
    """The answer itself shows the secret: it is not stored, so no later page could show it."""
    place = await business_context(visit)
    body = {"environment": place.environment, "name": visit.form.get("name", "").strip()}
    return await _keys_page(visit, await visit.api.post(f"{place.api}/api-keys", body))


@form(BASE + "/keys/{key_id:str}/revoke", "merchant", back=_keys_page)
async def revoke(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    await visit.api.delete(f"{place.api}/api-keys/{part(visit.path['key_id'])}")
    return visit.see_other(f"{place.url}/keys", "key-revoked")


routes = [keys, create, revoke]
