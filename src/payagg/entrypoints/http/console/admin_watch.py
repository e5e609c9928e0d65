"""What administrators watch and work off: payments of all businesses, anomalies, the audit trail, health."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from litestar import Response

from payagg.domain.anomaly import CLOSE_REASON_MAX, AnomalyKind, AnomalyStatus
from payagg.domain.audit import Action
from payagg.entrypoints.http.console.api import ApiRefused, part
from payagg.entrypoints.http.console.pages import led_to
from payagg.entrypoints.http.console.payment_list import EXPORTED, FILTERS, asked, instants, list_page, story_facts
from payagg.entrypoints.http.console.visit import PageVisit, form, page

HOME = "/console/admin"
OWNER = ("environment", "businessId")
ANOMALY_FILTERS = ("status", "kind", "reference")
AUDIT_FILTERS = ("businessId", "subject", "objectId", "action")


@page(HOME, "admin")
async def home(visit: PageVisit) -> Response[bytes]:
    return led_to(visit.services, f"{HOME}/gateways")


@page(HOME + "/payments", "admin")
async def payments(visit: PageVisit) -> Response[bytes]:
    facts = {"section": "/payments", "is_admin": True}
    return await list_page(visit, "/admin/payments", {}, (*OWNER, *FILTERS), facts)


@page(HOME + "/payments/export", "admin")
async def export(visit: PageVisit) -> Response[bytes]:
    return visit.api.stream("/admin/payments/export", **instants(asked(visit, (*OWNER, *EXPORTED))))


@page(HOME + "/payments/{reference:str}", "admin")
async def payment(visit: PageVisit) -> Response[bytes]:
    reference = visit.path["reference"]
    story = await visit.api.get(f"/admin/payments/{part(reference)}/story")
    (owner,) = (await visit.api.get("/admin/payments", reference=reference))["payments"]
    facts = {"section": "/payments", "is_admin": True, "owner": owner, **story_facts(visit, story)}
    return visit.page("payment", facts)


async def _anomalies(visit: PageVisit) -> Response[bytes]:
    wanted = asked(visit, ANOMALY_FILTERS)
    visit, found = await _found(visit, "/admin/anomalies", wanted, "anomalies")
    facts = {
        "statuses": [status.value for status in AnomalyStatus],
        "kinds": [kind.value for kind in AnomalyKind],
        "reason_max": CLOSE_REASON_MAX,
        **found,
    }
    return visit.page("anomalies", {"section": "/anomalies", **facts})


anomalies = page(HOME + "/anomalies", "admin")(_anomalies)


@form(HOME + "/anomalies/{anomaly_id:str}/acknowledge", "admin", back=_anomalies)
async def acknowledge(visit: PageVisit) -> Response[bytes]:
    await visit.api.post(f"/admin/anomalies/{part(visit.path['anomaly_id'])}/acknowledge")
    return visit.led_to(f"{HOME}/anomalies", "anomaly-changed")


@form(HOME + "/anomalies/{anomaly_id:str}/close", "admin", back=_anomalies)
async def close(visit: PageVisit) -> Response[bytes]:
    body = {"reason": visit.form.get("reason", "").strip()}
    await visit.api.post(f"/admin/anomalies/{part(visit.path['anomaly_id'])}/close", body)
    return visit.led_to(f"{HOME}/anomalies", "anomaly-changed")


@page(HOME + "/audit", "admin")
async def audit(visit: PageVisit) -> Response[bytes]:
    visit, found = await _found(visit, "/admin/audit", asked(visit, AUDIT_FILTERS), "entries")
    return visit.page("audit", {"section": "/audit", "actions": [action.value for action in Action], **found})


@page(HOME + "/health", "admin")
async def health(visit: PageVisit) -> Response[bytes]:
    return visit.page("health", {"section": "/health", "health": await visit.api.get("/admin/health")})


async def _found(visit: PageVisit, path: str, wanted: Mapping[str, str], name: str) -> tuple[PageVisit, dict[str, Any]]:
    """What a list shows, called `name`; what the API refuses of a filter is said above it."""
    shown: dict[str, Any] = {name: [], "nextCursor": None, "hasMore": False}
    try:
        shown = await visit.api.get(path, **wanted, after=visit.query("after"))
    except ApiRefused as refused:
        if refused.status != 400 or visit.problem is not None:
            raise
        visit = replace(visit, problem=refused)
    kept = {key: value for key, value in wanted.items() if value}
    older = f"?{urlencode({**kept, 'after': shown['nextCursor']})}" if shown["hasMore"] else None
    return visit, {name: shown[name], "wanted": wanted, "next": older}


routes = [home, payments, export, payment, anomalies, acknowledge, close, audit, health]
