"""Who may act for the business, and in which role."""

from litestar import Response

from payagg.extensions.console.business_context import BASE, business_context
from payagg.extensions.console.page_request import PageRequest, page


@page(BASE + "/team", "merchant")
async def team_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    members = await request.api.get(f"{context.api}/members")
    return request.page("team", {"context": context, "section": "/team", "members": members})


routes = [team_page]
