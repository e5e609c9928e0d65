"""A business's adjustments, and those that need attention."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from litestar import Response

from payagg.extensions.console.api import ApiRefused
from payagg.extensions.console.business_context import BASE, business_context
from payagg.extensions.console.page_request import PageRequest, page

LIMIT = 50


@page(BASE + "/adjustments", "merchant")
async def adjustments_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    wanted = {"needsAttention": request.query("needsAttention")}
    after = request.query("after")
    shown: dict[str, Any] = {"adjustments": [], "nextCursor": None, "hasMore": False}
    try:
        path = f"{context.api}/adjustments"
        shown = await request.api.get(path, environment=context.environment, **wanted, after=after, limit=LIMIT)
    except ApiRefused as refused:
        if refused.status != 400:
            raise
        request = replace(request, problem=refused)
    kept = {name: value for name, value in wanted.items() if value}
    facts = {
        "context": context,
        "section": "/adjustments",
        "adjustments": shown["adjustments"],
        "only_open": wanted["needsAttention"] == "true",
        "first": f"?{urlencode(kept)}" if after else None,
        "next": f"?{urlencode({**kept, 'after': shown['nextCursor']})}" if shown["hasMore"] else None,
    }
    return request.page("adjustments", facts)


routes = [adjustments_page]
