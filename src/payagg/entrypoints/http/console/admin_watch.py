"""The administrators' pages: payments of all businesses, anomalies, reconciliations, audit, health."""

from datetime import datetime
from typing import Any

from litestar import Response

from payagg.domain.anomaly import ASSIGNEE_MAX, CLOSE_REASON_MAX, NOTE_MAX, AnomalyKind, AnomalyStatus, Severity
from payagg.domain.reconciliation import NO_FINDING
from payagg.domain.resolution import EVIDENCE_MAX, OUTCOME, RESOLUTION_REASON_MAX
from payagg.entrypoints.http.console.api import part
from payagg.entrypoints.http.console.names import names_of
from payagg.entrypoints.http.console.pages import see_other
from payagg.entrypoints.http.console.payment_list import (
    EXPORTED,
    FILTERS,
    found_of,
    instants,
    list_page,
    query_values,
    timeline_facts,
)
from payagg.entrypoints.http.console.visit import PageRequest, form, page

HOME = "/console/admin"
OWNER = ("environment", "businessId")
ANOMALY_FILTERS = ("severity", "status", "kind", "assignee", "reference")
# Findings in display order: first those without an anomaly, which nobody else reports; then those that may be
# anomalies; then those that need nobody.
BUCKETS = {
    "HERE_ONLY": "paid here, no money there",
    "UNREADABLE": "lines that could not be read",
    "THERE_ONLY": "money there under a reference that is no payment of this gateway here",
    "TWO_THERE": "two charges of one payment, each paid",
    "OTHER_AMOUNT": "another amount, currency or environment",
    "RETURNED_THERE": "reversed, refunded or disputed there",
    "PAID_THERE": "paid there; open, failed or reversed here",
    "AGREED": "the same on both sides",
    "FOREIGN": "other business of the same account",
}


@page(HOME, "admin")
async def home(visit: PageRequest) -> Response[bytes]:
    return see_other(visit.services, f"{HOME}/gateways")


@page(HOME + "/payments", "admin")
async def payments(visit: PageRequest) -> Response[bytes]:
    facts = {"section": "/payments", "is_admin": True}
    return await list_page(visit, "/admin/payments", {}, (*OWNER, *FILTERS), facts)


@page(HOME + "/payments/export", "admin")
async def export(visit: PageRequest) -> Response[bytes]:
    return visit.api.stream("/admin/payments/export", **instants(query_values(visit, (*OWNER, *EXPORTED))))


async def _payment(visit: PageRequest) -> Response[bytes]:
    reference = visit.path["reference"]
    story = await visit.api.get(f"/admin/payments/{part(reference)}/story")
    (owner,) = (await visit.api.get("/admin/payments", reference=reference))["payments"]
    now = visit.services.clock.now()
    waiting = [one for one in story["resolutions"] if not one["confirmedBy"] and now < _instant(one["confirmUntil"])]
    facts = {
        "section": "/payments",
        "is_admin": True,
        "owner": owner,
        "waiting": waiting[0] if waiting else None,
        "reason_max": RESOLUTION_REASON_MAX,
        "evidence_max": EVIDENCE_MAX,
        **await timeline_facts(visit, story),
    }
    return visit.page("payment", facts)


payment = page(HOME + "/payments/{reference:str}", "admin")(_payment)


@form(HOME + "/payments/{reference:str}/resolve", "admin", back=_payment)
async def resolve(visit: PageRequest) -> Response[bytes]:
    body = {name: _text(visit, name) for name in ("reason", "evidence")}
    return await _resolve(visit, "", {"outcome": OUTCOME.value, **body}, "resolution-asked")


@form(HOME + "/payments/{reference:str}/resolve/confirm", "admin", back=_payment)
async def confirm_resolution(visit: PageRequest) -> Response[bytes]:
    return await _resolve(visit, "/confirm", None, "resolution-confirmed")


async def _resolve(visit: PageRequest, step: str, body: Any, done: str) -> Response[bytes]:
    reference = part(visit.path["reference"])
    await visit.api.post(f"/admin/payments/{reference}/resolve{step}", body)
    return visit.see_other(f"{HOME}/payments/{reference}", done)


async def _anomalies(visit: PageRequest) -> Response[bytes]:
    wanted = query_values(visit, ANOMALY_FILTERS)
    visit, found = await found_of(visit, "/admin/anomalies", wanted, "anomalies")
    facts = {
        "severities": [severity.value for severity in Severity],
        "statuses": [status.value for status in AnomalyStatus],
        "kinds": [kind.value for kind in AnomalyKind],
        "reason_max": CLOSE_REASON_MAX,
        "note_max": NOTE_MAX,
        "assignee_max": ASSIGNEE_MAX,
        **found,
    }
    return visit.page("anomalies", {"section": "/anomalies", **facts})


anomalies = page(HOME + "/anomalies", "admin")(_anomalies)


@form(HOME + "/anomalies/{anomaly_id:str}/acknowledge", "admin", back=_anomalies)
async def acknowledge(visit: PageRequest) -> Response[bytes]:
    await visit.api.post(f"/admin/anomalies/{part(visit.path['anomaly_id'])}/acknowledge")
    return visit.see_other(f"{HOME}/anomalies", "anomaly-changed")


@form(HOME + "/anomalies/{anomaly_id:str}/close", "admin", back=_anomalies)
async def close(visit: PageRequest) -> Response[bytes]:
    body = {"reason": visit.form.get("reason", "").strip()}
    await visit.api.post(f"/admin/anomalies/{part(visit.path['anomaly_id'])}/close", body)
    return visit.see_other(f"{HOME}/anomalies", "anomaly-changed")


@form(HOME + "/anomalies/{anomaly_id:str}/assign", "admin", back=_anomalies)
async def assign(visit: PageRequest) -> Response[bytes]:
    body = {"assignee": visit.form_value("assignee")}
    await visit.api.patch(f"/admin/anomalies/{part(visit.path['anomaly_id'])}", body)
    return visit.see_other(f"{HOME}/anomalies", "anomaly-changed")


@form(HOME + "/anomalies/{anomaly_id:str}/notes", "admin", back=_anomalies)
async def add_note(visit: PageRequest) -> Response[bytes]:
    await visit.api.post(f"/admin/anomalies/{part(visit.path['anomaly_id'])}/notes", {"text": _text(visit, "text")})
    return visit.see_other(f"{HOME}/anomalies", "anomaly-changed")


@page(HOME + "/reconciliation", "admin")
async def reconciliation(visit: PageRequest) -> Response[bytes]:
    visit, found = await found_of(visit, "/admin/reconciliations", {}, "reconciliations")
    quiet = [bucket.value for bucket in NO_FINDING]
    facts = {
        "section": "/reconciliation",
        "means": BUCKETS,
        "quiet": quiet,
        "is_first": not visit.query("after"),
        "names": await names_of(visit, None),
    }
    return visit.page("reconciliation", {**facts, **found})


@page(HOME + "/reconciliation/{reconciliation_id:str}/findings.csv", "admin")
async def findings(visit: PageRequest) -> Response[bytes]:
    return visit.api.stream(f"/admin/reconciliations/{part(visit.path['reconciliation_id'])}/findings.csv")


@page(HOME + "/health", "admin")
async def health(visit: PageRequest) -> Response[bytes]:
    facts = {"names": await names_of(visit, None), "health": await visit.api.get("/admin/health")}
    return visit.page("health", {"section": "/health", **facts})


def _text(visit: PageRequest, name: str) -> str:
    """A text area's value. A browser sends each line end as two characters and counts it as one."""
    return visit.form.get(name, "").replace("\r\n", "\n").strip()


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


routes = [
    *(home, payments, export, payment, resolve, confirm_resolution),
    *(anomalies, acknowledge, assign, add_note, close),
    *(reconciliation, findings, health),
]
