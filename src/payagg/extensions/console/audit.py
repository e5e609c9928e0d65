"""Who may act for a business, and who changed what: all for administrators, a business's own part for its managers."""

from litestar import Response

from payagg.domain.audit import Action
from payagg.extensions.console.names import action, change, names_of, who
from payagg.extensions.console.page_request import BASE, BusinessContext, PageRequest, Pages, business_context
from payagg.extensions.console.payments import found_of, query_values

of_merchants, of_administrators = Pages("merchant"), Pages("admin")
FILTERS = ("subject", "objectId", "action")


@of_merchants.page(BASE + "/team")
async def team_page(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    members = await request.api.get(f"{context.api}/members")
    return request.page("team", {"context": context, "section": "/team", "members": members})


@of_administrators.page("/console/admin/audit")
async def of_all(request: PageRequest) -> Response[bytes]:
    return await _audit_page(request, None, "/admin/audit", ("businessId", *FILTERS))


@of_merchants.page(BASE + "/audit")
async def of_business(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    return await _audit_page(request, context, f"{context.api}/audit", FILTERS)


async def _audit_page(
    request: PageRequest, context: BusinessContext | None, path: str, filters: tuple[str, ...]
) -> Response[bytes]:
    request, found = await found_of(request, path, query_values(request, filters), "entries")
    facts = {"actions": [one.value for one in Action], "action": action, "change": change, "who": who}
    shown = {"section": "/audit", "context": context, "names": await names_of(request, context), **facts, **found}
    return request.page("audit", shown)


routes = [*of_merchants, *of_administrators]
