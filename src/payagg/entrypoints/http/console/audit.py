"""Who changed what: all of it for administrators, a business's own part for its managers."""

from litestar import Response

from payagg.domain.audit import Action
from payagg.entrypoints.http.console.names import action, change, names_of, who
from payagg.entrypoints.http.console.payment_list import found_of, query_values
from payagg.entrypoints.http.console.place import BASE, BusinessContext, business_context
from payagg.entrypoints.http.console.visit import PageRequest, page

FILTERS = ("subject", "objectId", "action")


@page("/console/admin/audit", "admin")
async def of_all(visit: PageRequest) -> Response[bytes]:
    return await _audit_page(visit, None, "/admin/audit", ("businessId", *FILTERS))


@page(BASE + "/audit", "merchant")
async def of_business(visit: PageRequest) -> Response[bytes]:
    place = await business_context(visit)
    return await _audit_page(visit, place, f"{place.api}/audit", FILTERS)


async def _audit_page(
    visit: PageRequest, place: BusinessContext | None, path: str, filters: tuple[str, ...]
) -> Response[bytes]:
    visit, found = await found_of(visit, path, query_values(visit, filters), "entries")
    facts = {"actions": [one.value for one in Action], "action": action, "change": change, "who": who}
    shown = {"section": "/audit", "place": place, "names": await names_of(visit, place), **facts, **found}
    return visit.page("audit", shown)


routes = [of_all, of_business]
