"""The administrators' pages: payments of all businesses, anomalies, reconciliations, audit, health."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from litestar import Response

from payagg.domain.anomaly import ASSIGNEE_MAX, CLOSE_REASON_MAX, NOTE_MAX, AnomalyKind, AnomalyStatus, Severity
from payagg.domain.reconciliation import NO_FINDING
from payagg.domain.resolution import EVIDENCE_MAX, OUTCOME, RESOLUTION_REASON_MAX
from payagg.extensions.console.api import part
from payagg.extensions.console.names import names_of
from payagg.extensions.console.page_request import PageRequest, Pages
from payagg.extensions.console.pages import see_other
from payagg.extensions.console.payments import (
    EXPORTED,
    FILTERS,
    found_of,
    instants,
    list_page,
    query_values,
    timeline_facts,
)

routes = Pages("admin")
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


@routes.page(HOME)
async def home(request: PageRequest) -> Response[bytes]:
    return see_other(request.services, f"{HOME}/gateways")


@routes.page(HOME + "/payments")
async def payments(request: PageRequest) -> Response[bytes]:
    facts = {"section": "/payments", "is_admin": True}
    return await list_page(request, "/admin/payments", {}, (*OWNER, *FILTERS), facts)


@routes.page(HOME + "/payments/export")
async def export(request: PageRequest) -> Response[bytes]:
    return request.api.stream("/admin/payments/export", **instants(query_values(request, (*OWNER, *EXPORTED))))


@routes.page(HOME + "/payments/{reference:str}")
async def _payment(request: PageRequest) -> Response[bytes]:
    reference = request.path["reference"]
    story = await request.api.get(f"/admin/payments/{part(reference)}/story")
    (owner,) = (await request.api.get("/admin/payments", reference=reference))["payments"]
    now = request.services.clock.now()
    asked = [one for one in story["resolutions"] if not one["confirmedBy"]]
    waiting = [one for one in asked if now < datetime.fromisoformat(one["confirmUntil"])]
    facts = {
        "section": "/payments",
        "is_admin": True,
        "owner": owner,
        "waiting": waiting[0] if waiting else None,
        "reason_max": RESOLUTION_REASON_MAX,
        "evidence_max": EVIDENCE_MAX,
        **await timeline_facts(request, story),
    }
    return request.page("payment", facts)


def _resolution(request: PageRequest) -> Any:
    return {"outcome": OUTCOME.value, **{name: _text(request, name) for name in ("reason", "evidence")}}


ONE, CALL = HOME + "/payments/{reference:str}/resolve", "POST /admin/payments/{reference}/resolve"
SHOWN = HOME + "/payments/{reference}"
routes.action(ONE, CALL, SHOWN, "resolution-asked", back=_payment, body=_resolution)
routes.action(ONE + "/confirm", CALL + "/confirm", SHOWN, "resolution-confirmed", back=_payment)


@routes.page(HOME + "/anomalies")
async def _anomalies(request: PageRequest) -> Response[bytes]:
    wanted = query_values(request, ANOMALY_FILTERS)
    request, found = await found_of(request, "/admin/anomalies", wanted, "anomalies")
    facts = {
        "severities": [severity.value for severity in Severity],
        "statuses": [status.value for status in AnomalyStatus],
        "kinds": [kind.value for kind in AnomalyKind],
        "reason_max": CLOSE_REASON_MAX,
        "note_max": NOTE_MAX,
        "assignee_max": ASSIGNEE_MAX,
        **found,
    }
    return request.page("anomalies", {"section": "/anomalies", **facts})


def _on_anomaly(step: str, call: str, body: Callable[[PageRequest], Any] = lambda _: None) -> None:
    path = HOME + "/anomalies/{anomaly_id:str}/" + step
    routes.action(path, call, HOME + "/anomalies", "anomaly-changed", back=_anomalies, body=body)


ANOMALY = "/admin/anomalies/{anomaly_id}"
_on_anomaly("acknowledge", f"POST {ANOMALY}/acknowledge")
_on_anomaly("close", f"POST {ANOMALY}/close", lambda sent: {"reason": sent.form.get("reason", "").strip()})
_on_anomaly("assign", f"PATCH {ANOMALY}", lambda sent: {"assignee": sent.form_value("assignee")})
_on_anomaly("notes", f"POST {ANOMALY}/notes", lambda sent: {"text": _text(sent, "text")})


@routes.page(HOME + "/reconciliation")
async def reconciliation(request: PageRequest) -> Response[bytes]:
    request, found = await found_of(request, "/admin/reconciliations", {}, "reconciliations")
    quiet = [bucket.value for bucket in NO_FINDING]
    facts = {
        "section": "/reconciliation",
        "means": BUCKETS,
        "quiet": quiet,
        "is_first": not request.query("after"),
        "names": await names_of(request, None),
    }
    return request.page("reconciliation", {**facts, **found})


@routes.page(HOME + "/reconciliation/{reconciliation_id:str}/findings.csv")
async def findings(request: PageRequest) -> Response[bytes]:
    return request.api.stream(f"/admin/reconciliations/{part(request.path['reconciliation_id'])}/findings.csv")


@routes.page(HOME + "/health")
async def health(request: PageRequest) -> Response[bytes]:
    facts = {"names": await names_of(request, None), "health": await request.api.get("/admin/health")}
    return request.page("health", {"section": "/health", **facts})


def _text(request: PageRequest, name: str) -> str:
    """A text area's value. A browser sends each line end as two characters and counts it as one."""
    return request.form.get(name, "").replace("\r\n", "\n").strip()
