"""What administrators watch: health, anomalies, reconciliations; and ending a payment by hand, which one administrator
requests and another confirms.

The confirmation has its own path: with one path, the same POST would be a request or a confirmation depending on stored
state, and the sender must choose which."""

from collections.abc import Mapping
from typing import Any

from litestar import Response

from payagg.application.accounts.access import Administrator
from payagg.application.ports.reports import AnomalyFilter
from payagg.application.reports.health import ServiceHealth, service_health
from payagg.application.schemas.operations import (
    AddNote,
    AnomalyPage,
    AnomalyView,
    AssignAnomaly,
    CloseAnomaly,
    ReconciliationPage,
    ReconciliationView,
    ResolutionView,
    ResolvePayment,
)
from payagg.application.schemas.views import PAGE_DEFAULT, PAGE_MAX
from payagg.domain.anomaly import ASSIGNEE_MAX, Anomaly, AnomalyKind, AnomalyStatus, Severity
from payagg.domain.errors import ErrorCode
from payagg.domain.values import REFERENCE_PATTERN, parse_reference
from payagg.entrypoints.http.api.auth import admin_changes, admin_reads, by
from payagg.entrypoints.http.server.routing import KB, AnyRequest, Call, Routes
from payagg.entrypoints.http.server.wire import (
    WORD_MAX,
    csv_stream,
    cursor_parameters,
    cursor_query,
    text_query,
    word_query,
)

routes = Routes("Anomalies")
health = Routes("Health")
reconciliations = Routes("Reconciliations")
BASE = "/admin/anomalies"
ONE = BASE + "/{anomaly_id:str}"
RESOLVE = "/admin/payments/{reference:str}/resolve"
UNRESOLVED = (ErrorCode.PAYMENT_ALREADY_FINAL, ErrorCode.RESOLUTION_NOT_ALLOWED)
FILTERS: Mapping[str, Any] = {
    "status": {"type": "string", "enum": [status.value for status in AnomalyStatus]},
    "kind": {"type": "string", "enum": [kind.value for kind in AnomalyKind]},
    "severity": {"type": "string", "enum": [severity.value for severity in Severity]},
    "assignee": {"type": "string", "maxLength": ASSIGNEE_MAX},
    "reference": {
        "type": "string",
        "pattern": REFERENCE_PATTERN,
        "minLength": 19,
        "maxLength": 19,
        "examples": ["PAY-20250131-7K2M9X"],
    },
    **cursor_parameters("anm", PAGE_DEFAULT, PAGE_MAX),
}


@routes.add("GET", BASE, guard=admin_reads, query=FILTERS, errors=(ErrorCode.INVALID_REFERENCE,))
async def list_anomalies(call: Call[Administrator, None]) -> AnomalyPage:
    """List facts about money that changed no payment. Newest first; pass `nextCursor` as `after`."""
    after, limit = cursor_query(call.request, "anm", PAGE_DEFAULT, PAGE_MAX)
    wanted = _filter(call.request, after)
    shown, cursor, has_more = await call.services.anomalies.list_anomalies(wanted, limit)
    return AnomalyPage([_view(call, anomaly) for anomaly in shown], cursor, has_more)


@routes.add("PATCH", ONE, guard=admin_changes, body_max=8 * KB, errors=(ErrorCode.ANOMALY_ALREADY_CLOSED,))
async def assign_anomaly(call: Call[Administrator, AssignAnomaly]) -> AnomalyView:
    """Assign an anomaly."""
    done = await call.services.anomalies.assign(call.path["anomaly_id"], call.body.assignee, by=by(call))
    return _view(call, done)


@routes.add(
    "POST",
    ONE + "/notes",
    guard=admin_changes,
    body_max=16 * KB,
    status=201,
    errors=(ErrorCode.ANOMALY_ALREADY_CLOSED, ErrorCode.NOTE_LIMIT_REACHED),
)
async def add_anomaly_note(call: Call[Administrator, AddNote]) -> AnomalyView:
    """Add a note to an anomaly."""
    done = await call.services.anomalies.note(call.path["anomaly_id"], call.body.text, by=by(call))
    return _view(call, done)


@routes.add("POST", ONE + "/acknowledge", guard=admin_changes, errors=(ErrorCode.ANOMALY_NOT_OPEN,))
async def acknowledge_anomaly(call: Call[Administrator, None]) -> AnomalyView:
    """Acknowledge an anomaly."""
    done = await call.services.anomalies.acknowledge(call.path["anomaly_id"], by=by(call))
    return _view(call, done)


@routes.add("POST", ONE + "/close", guard=admin_changes, body_max=8 * KB, errors=(ErrorCode.ANOMALY_ALREADY_CLOSED,))
async def close_anomaly(call: Call[Administrator, CloseAnomaly]) -> AnomalyView:
    """Close an anomaly with what was done about it."""
    done = await call.services.anomalies.close(call.path["anomaly_id"], call.body.reason, by=by(call))
    return _view(call, done)


@routes.add(
    "POST",
    RESOLVE,
    guard=admin_changes,
    body_max=16 * KB,
    status=201,
    errors=(*UNRESOLVED, ErrorCode.RESOLUTION_ALREADY_REQUESTED),
)
async def request_resolution(call: Call[Administrator, ResolvePayment]) -> ResolutionView:
    """Ask to end a payment that no provider will end. After `expiresAt`, for a payment that is not final and has an
    anomaly, closed or not. Nothing changes until another administrator confirms, within 24 hours."""
    asked = await call.services.resolutions.ask(call.path["reference"], call.body, by=by(call))
    return ResolutionView.of(asked)


@routes.add(
    "POST",
    RESOLVE + "/confirm",
    guard=admin_changes,
    errors=(*UNRESOLVED, ErrorCode.RESOLUTION_NOT_REQUESTED, ErrorCode.SECOND_ADMINISTRATOR_REQUIRED),
)
async def confirm_resolution(call: Call[Administrator, None]) -> ResolutionView:
    """Confirm another administrator's request: the payment is FAILED. The failure reason is `RESOLVED`. Money that
    comes later is the anomaly LATE_SUCCESS."""
    return ResolutionView.of(await call.services.resolutions.confirm(call.path["reference"], by=by(call)))


def _view(call: Call[Administrator, Any], anomaly: Anomaly) -> AnomalyView:
    return AnomalyView.of(anomaly, call.services.clock.now())


def _filter(request: AnyRequest, after: str | None) -> AnomalyFilter:
    reference = text_query(request, "reference", WORD_MAX)
    return AnomalyFilter(
        status=word_query(request, "status", AnomalyStatus),
        kind=word_query(request, "kind", AnomalyKind),
        reference=None if reference is None else parse_reference(reference),
        after=after,
        severity=word_query(request, "severity", Severity),
        assignee=text_query(request, "assignee", ASSIGNEE_MAX),
    )


RECONCILIATIONS = "/admin/reconciliations"
RECONCILIATION = RECONCILIATIONS + "/{reconciliation_id:str}"


@reconciliations.add("GET", RECONCILIATIONS, guard=admin_reads, query=cursor_parameters("rec", PAGE_DEFAULT, PAGE_MAX))
async def list_reconciliations(call: Call[Administrator, None]) -> ReconciliationPage:
    """List reconciliations with providers' lists. Newest first; pass `nextCursor` as `after`. One without `endedAt` is
    running, or was killed."""
    after, limit = cursor_query(call.request, "rec", PAGE_DEFAULT, PAGE_MAX)
    shown, cursor, has_more = await call.services.reconciliation_runs.page(after, limit)
    return ReconciliationPage([ReconciliationView.of(run) for run in shown], cursor, has_more)


@reconciliations.add("GET", RECONCILIATION, guard=admin_reads)
async def get_reconciliation(call: Call[Administrator, None]) -> ReconciliationView:
    """Show a reconciliation with its counts and sums."""
    return ReconciliationView.of(await call.services.reconciliation_runs.get(call.path["reconciliation_id"]))


@reconciliations.add(
    "GET", RECONCILIATION + "/findings.csv", guard=admin_reads, returns=bytes, media_types=("text/csv",)
)
async def export_reconciliation_findings(call: Call[Administrator, None]) -> Response[Any]:
    """Export the differences as CSV. UTF-8 with a header row; amounts in kobo. Empty until the reconciliation has
    ended."""
    run_id = call.path["reconciliation_id"]
    rows = call.services.reconciliation_runs.findings_csv(run_id)
    return await csv_stream(call.request, rows, f"{run_id}.csv")


@health.add("GET", "/admin/health", guard=admin_reads)
async def get_service_health(call: Call[Administrator, None]) -> ServiceHealth:
    """Show how late the queues are and what waits for a person."""
    use_cases = call.services
    return await service_health(use_cases.store, use_cases.clock, use_cases.reconciler, use_cases.refused_events)
