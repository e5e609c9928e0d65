"""A business's API keys of one environment: list, create with the secret shown once, revoke."""

from dataclasses import replace
from typing import Any

from litestar import Response

from payagg.entrypoints.http.console.api import ApiRefused, part
from payagg.entrypoints.http.console.place import BASE, place_of
from payagg.entrypoints.http.console.visit import PageVisit, form, page


async def _shown(visit: PageVisit, made: dict[str, Any] | None = None) -> Response[bytes]:
    place = await place_of(visit)
    keys = None
    try:
        keys = (await visit.api.get(f"{place.api}/api-keys"))[place.name]
    except ApiRefused as refused:  # the API lists no keys of a business that is not active
        if refused.status != 403:
            raise
        visit = replace(visit, problem=visit.problem or refused)
    return visit.page("keys", {"place": place, "section": "/keys", "keys": keys, "made": made})


@page(BASE + "/keys", "merchant")
async def keys(visit: PageVisit) -> Response[bytes]:
    return await _shown(visit)


@form(BASE + "/keys", "merchant", back=_shown)
async def create(visit: PageVisit) -> Response[bytes]:
    """The answer itself shows the secret: nothing keeps it, so no address could show it later."""
    place = await place_of(visit)
    body = {"environment": place.environment, "name": visit.form.get("name", "").strip()}
    return await _shown(visit, await visit.api.post(f"{place.api}/api-keys", body))


@form(BASE + "/keys/{key_id:str}/revoke", "merchant", back=_shown)
async def revoke(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    await visit.api.delete(f"{place.api}/api-keys/{part(visit.path['key_id'])}")
    return visit.led_to(f"{place.url}/keys", "key-revoked")


routes = [keys, create, revoke]
