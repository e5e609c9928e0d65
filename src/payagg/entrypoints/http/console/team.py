"""Who may act for the business, and in which role."""

from litestar import Response

from payagg.entrypoints.http.console.place import BASE, place_of
from payagg.entrypoints.http.console.visit import PageVisit, page


@page(BASE + "/team", "merchant")
async def shown(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    members = await visit.api.get(f"{place.api}/members")
    return visit.page("team", {"place": place, "section": "/team", "members": members})


routes = [shown]
