"""A business's adjustments, and those that need attention."""

from litestar import Response

from payagg.extensions.console.business_context import BASE, business_context
from payagg.extensions.console.page_request import PageRequest, page
from payagg.extensions.console.payment_list import found_of, query_values

LIMIT = 50


@page(BASE + "/adjustments", "merchant")
async def adjustments_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    wanted, path = query_values(request, ("needsAttention",)), f"{context.api}/adjustments"
    environment = context.environment
    request, found = await found_of(request, path, wanted, "adjustments", environment=environment, limit=LIMIT)
    facts = {"context": context, "section": "/adjustments", "only_open": wanted["needsAttention"] == "true"}
    return request.page("adjustments", {**facts, **found})


routes = [adjustments_page]
