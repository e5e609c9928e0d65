"""Reconciliations over HTTP: they are listed and read, and their findings fetched as CSV."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import httpx
import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg.application.reports import reconciliation as reconciliation_runs
from payagg.domain.reconciliation import LineKind, MatchBucket, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, assert_refused, bearer

SUPPORT = bearer(admin_token("SUPPORT"))
FIRST, SECOND = an_id("rec", 1), an_id("rec", 2)
DAY = date(2025, 1, 30)
TOTALS = {
    bucket.value: {"payments": 1200 + place, "ours": 2**62 + place, "lines": 7, "theirs": 123456}
    for place, bucket in enumerate(MatchBucket)
}
RUN = ReconciliationRun(FIRST, "provider_a", Environment.LIVE, DAY, DAY, "list", "cli:ada", NOW)
ENDED = replace(RUN, ended_at=NOW + timedelta(minutes=1), totals=TOTALS)
OTHER = replace(RUN, id=SECOND, gateway="provider_b", environment=Environment.SANDBOX, last_day=DAY + timedelta(days=1))
FINDINGS = [
    ReconciliationFinding(FIRST, 1, MatchBucket.HERE_ONLY, REFERENCE, None, None, None, 5000, None, None),
    ReconciliationFinding(
        FIRST, 2, MatchBucket.THERE_ONLY, REFERENCE, REFERENCE + ".2", LineKind.REFUND, "=7", None, 5000, "ANOMALY"
    ),
]


async def with_two(api: Api) -> None:
    async with api.services.store.begin() as tx:
        await tx.reconciliations.add(RUN)
        await tx.reconciliations.add(OTHER)
        await tx.reconciliations.end(ENDED, FINDINGS)


@pytest.mark.rule("GET /admin/reconciliations", "GET /admin/reconciliations/{reconciliationId}")
@pytest.mark.rule("GET /admin/reconciliations/{reconciliationId}/findings.csv")
async def test_reconciliations_are_listed_read_and_fetched(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation_runs, "PAGE", 1)
    await with_two(api)

    async def asked(path: str = "", **query: Any) -> httpx.Response:
        return await api.client.get(f"/admin/reconciliations{path}", headers=SUPPORT, params=query)

    page = (await asked(limit=1)).json()["data"]
    [run] = page["reconciliations"]
    assert (run["id"], run["endedAt"], page["hasMore"]) == (SECOND, None, True)  # under way, or killed
    page = (await asked(after=page["nextCursor"])).json()["data"]
    assert ([run["id"] for run in page["reconciliations"]], page["hasMore"]) == ([FIRST], False)
    end = (await asked(after=page["nextCursor"])).json()["data"]
    assert end == {"reconciliations": [], "nextCursor": None, "hasMore": False}
    shown = (await asked(f"/{FIRST}")).json()["data"]
    own = {"gateway": "provider_a", "environment": "LIVE", "firstDay": "2025-01-30", "startedBy": "cli:ada"}
    assert shown.items() >= {**own, "source": "list"}.items()
    assert shown["buckets"]["HERE_ONLY"] == TOTALS["HERE_ONLY"]  # a sum may have more than 64 bits
    for missing in (f"/{an_id('rec', 9)}", "/nonsense/findings.csv"):
        assert_refused(await asked(missing), 404, "NOT_FOUND")

    answer = await asked(f"/{FIRST}/findings.csv")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert answer.headers["content-disposition"] == f'attachment; filename="{FIRST}.csv"'
    assert answer.text.splitlines() == [
        "bucket,reference,providerReference,kind,lineId,ourKobo,theirKobo,effect",
        f"HERE_ONLY,{REFERENCE},,,,5000,,",
        f"THERE_ONLY,{REFERENCE},{REFERENCE}.2,REFUND,'=7,,5000,ANOMALY",
    ]
