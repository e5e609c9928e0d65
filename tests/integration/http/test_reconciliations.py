"""Reconciliations over HTTP: administrators and SUPPORT list them, read one, and fetch its findings as CSV."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg.application import reconciliation_runs
from payagg.domain.reconciliation import LineKind, MatchBucket, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, bearer

pytestmark = pytest.mark.anyio
ADMIN, SUPPORT = bearer(admin_token()), bearer(admin_token("SUPPORT"))
FIRST, SECOND = an_id("rec", 1), an_id("rec", 2)
DAY = date(2025, 1, 30)
TOTAL = {"payments": 1, "ours": 2**62, "lines": 1, "theirs": 5000}
RUN = ReconciliationRun(FIRST, "provider_a", Environment.LIVE, DAY, DAY, "list", "cli:ada", NOW)
ENDED = replace(RUN, ended_at=NOW + timedelta(minutes=1), totals={"HERE_ONLY": TOTAL})
FINDINGS = [
    ReconciliationFinding(FIRST, 1, MatchBucket.HERE_ONLY, REFERENCE, None, None, None, 5000, None, None),
    ReconciliationFinding(
        FIRST, 2, MatchBucket.THERE_ONLY, REFERENCE, REFERENCE + ".2", LineKind.REFUND, "=7", None, 5000, "ANOMALY"
    ),
]


async def with_two(api: Api) -> None:
    async with api.services.store.begin() as tx:
        await tx.reconciliations.add(RUN)
        await tx.reconciliations.add(replace(RUN, id=SECOND))
    async with api.services.store.begin() as tx:
        await tx.reconciliations.end(ENDED, FINDINGS)


@pytest.mark.rule("GET /admin/reconciliations")
async def test_reconciliations_are_listed_newest_first_by_a_cursor(api: Api) -> None:
    await with_two(api)
    answer = await api.client.get("/admin/reconciliations", headers=SUPPORT, params={"limit": 1})
    page = answer.json()["data"]
    assert ([run["id"] for run in page["reconciliations"]], page["hasMore"]) == ([SECOND], True)
    assert page["reconciliations"][0]["endedAt"] is None  # under way, or killed
    after = {"after": page["nextCursor"]}
    answer = await api.client.get("/admin/reconciliations", headers=SUPPORT, params=after)
    page = answer.json()["data"]
    assert ([run["id"] for run in page["reconciliations"]], page["hasMore"]) == ([FIRST], False)


@pytest.mark.rule("GET /admin/reconciliations/{reconciliationId}")
async def test_a_reconciliation_is_shown_with_its_counts_and_sums(api: Api) -> None:
    await with_two(api)
    answer = await api.client.get(f"/admin/reconciliations/{FIRST}", headers=SUPPORT)
    shown = answer.json()["data"]
    assert (shown["gateway"], shown["environment"], shown["firstDay"]) == ("provider_a", "LIVE", "2025-01-30")
    assert (shown["startedBy"], shown["source"]) == ("cli:ada", "list")
    assert shown["buckets"] == {"HERE_ONLY": TOTAL}  # a sum may have more than 64 bits
    for path in (f"/admin/reconciliations/{an_id('rec', 9)}", "/admin/reconciliations/nonsense/findings.csv"):
        missing = await api.client.get(path, headers=ADMIN)
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.rule("GET /admin/reconciliations/{reconciliationId}/findings.csv")
async def test_findings_are_a_csv_file_of_any_length(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation_runs, "PAGE", 1)
    await with_two(api)
    answer = await api.client.get(f"/admin/reconciliations/{FIRST}/findings.csv", headers=SUPPORT)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert answer.headers["content-disposition"] == f'attachment; filename="{FIRST}.csv"'
    assert answer.text.splitlines() == [
        "bucket,reference,providerReference,kind,lineId,ourKobo,theirKobo,effect",
        f"HERE_ONLY,{REFERENCE},,,,5000,,",
        f"THERE_ONLY,{REFERENCE},{REFERENCE}.2,REFUND,'=7,,5000,ANOMALY",
    ]
