"""Who may act for the business, and in which role."""

from litestar import Response

from payagg.entrypoints.http.console.place import BASE, business_context
from payagg.entrypoints.http.console.visit import PageRequest, page


@page(BASE + "/team", "merchant")
async def team_page(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    members = await visit.api.get(f"{place.api}/members")
    return visit.page("team", {"place": place, "section": "/team", "members": members})


routes = [team_page]
