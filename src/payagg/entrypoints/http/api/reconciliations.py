"""Reconciliations with providers' lists, for administrators: list, detail, and findings as CSV."""

from typing import Any

from litestar import Response

from payagg.application.accounts.access import Administrator
from payagg.application.schemas.reconciliations import PAGE_DEFAULT, PAGE_MAX, ReconciliationPage, ReconciliationView
from payagg.entrypoints.http.api.auth import admin_reads
from payagg.entrypoints.http.server.routing import Call, Routes
from payagg.entrypoints.http.server.wire import csv_stream, cursor_parameters, cursor_query

routes = Routes("Reconciliations")
BASE = "/admin/reconciliations"
ONE = BASE + "/{reconciliation_id:str}"


@routes.add(
    "GET",
    BASE,
    "List reconciliations with providers' lists",
    guard=admin_reads,
    query=cursor_parameters("rec", PAGE_DEFAULT, PAGE_MAX),
    description="Newest first; pass `nextCursor` as `after`. One without `endedAt` is running, or was killed.",
)
async def list_reconciliations(call: Call[Administrator, None]) -> ReconciliationPage:
    after, limit = cursor_query(call.request, "rec", PAGE_DEFAULT, PAGE_MAX)
    found = await call.services.reconciliation_runs.page(after, limit + 1)
    page, has_more = found[:limit], len(found) > limit
    return ReconciliationPage([ReconciliationView.of(run) for run in page], page[-1].id if page else None, has_more)


@routes.add("GET", ONE, "Show a reconciliation with its counts and sums", guard=admin_reads)
async def get_reconciliation(call: Call[Administrator, None]) -> ReconciliationView:
    return ReconciliationView.of(await call.services.reconciliation_runs.get(call.path["reconciliation_id"]))


@routes.add(
    "GET",
    ONE + "/findings.csv",
    "Export the differences as CSV",
    guard=admin_reads,
    returns=bytes,
    media_types=("text/csv",),
    description="UTF-8 with a header row; amounts in kobo. Empty until the reconciliation has ended.",
)
async def export_reconciliation_findings(call: Call[Administrator, None]) -> Response[Any]:
    run_id = call.path["reconciliation_id"]
    rows = call.services.reconciliation_runs.findings_csv(run_id)
    return await csv_stream(call.request, rows, f"{run_id}.csv")
