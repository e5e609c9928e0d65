"""A business's adjustments, and those that need attention."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from litestar import Response

from payagg.entrypoints.http.console.api import ApiRefused
from payagg.entrypoints.http.console.place import BASE, business_context
from payagg.entrypoints.http.console.visit import PageRequest, page

LIMIT = 50


@page(BASE + "/adjustments", "merchant")
async def adjustments_page(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    wanted = {"needsAttention": visit.query("needsAttention")}
    after = visit.query("after")
    shown: dict[str, Any] = {"adjustments": [], "nextCursor": None, "hasMore": False}
    try:
        path = f"{place.api}/adjustments"
        shown = await visit.api.get(path, environment=place.environment, **wanted, after=after, limit=LIMIT)
    except ApiRefused as refused:
        if refused.status != 400:
            raise
        visit = replace(visit, problem=refused)
    kept = {name: value for name, value in wanted.items() if value}
    facts = {
        "place": place,
        "section": "/adjustments",
        "adjustments": shown["adjustments"],
        "only_open": wanted["needsAttention"] == "true",
        "first": f"?{urlencode(kept)}" if after else None,
        "next": f"?{urlencode({**kept, 'after': shown['nextCursor']})}" if shown["hasMore"] else None,
    }
    return visit.page("adjustments", facts)


routes = [adjustments_page]
