"""The console's page "Reconciliation": every run with its sums, and its findings as the API gives them."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg.application import reconciliation_runs
from payagg.domain.reconciliation import MatchBucket, ReconciliationFinding
from payagg.domain.values import Environment
from tests.integration.http.test_reconciliations import DAY, FIRST, RUN, SECOND
from tests.support.console_browser import Browser
from tests.support.http_world import Api, admin_token, bearer

pytestmark = pytest.mark.anyio
PAGE = "/console/admin/reconciliation"
NEEDED = ["here only", "unreadable", "there only", "two there", "other amount", "returned there", "paid there"]
TOTALS = {
    bucket.value: {"payments": 1200 + place, "ours": 2**62 + place, "lines": 7, "theirs": 123456}
    for place, bucket in enumerate(MatchBucket)
}
OTHER = replace(RUN, id=SECOND, gateway="provider_b", environment=Environment.SANDBOX, last_day=DAY + timedelta(days=1))


async def with_findings(api: Api, many: int) -> None:
    """A run that ended with `many` findings and something in every bucket, and a newer one without an end."""
    findings = [
        ReconciliationFinding(FIRST, n, MatchBucket.HERE_ONLY, REFERENCE, None, None, f'=Ọ, "{n}', n, None, None)
        for n in range(1, many + 1)
    ]
    async with api.services.store.begin() as tx:
        await tx.reconciliations.add(RUN)
        await tx.reconciliations.add(OTHER)
    async with api.services.store.begin() as tx:
        await tx.reconciliations.end(replace(RUN, ended_at=NOW + timedelta(minutes=1), totals=TOTALS), findings)


def cards(page: str) -> list[str]:
    return page.split("<li><h2>")[1:]


async def test_runs_are_shown_newest_first_with_what_needs_somebody_first(api: Api) -> None:
    await with_findings(api, 1)
    browser = await Browser(api).sign_in_as_admin()
    newer, older = cards((await browser.open(PAGE)).text)
    assert newer.startswith("provider_b SANDBOX, <time>2025-01-30</time> to <time>2025-01-31</time></h2>")
    assert "under way or killed" in newer
    assert "findings.csv" not in newer  # it has none yet
    assert older.startswith("provider_a LIVE, <time>2025-01-30</time></h2>")
    assert "cli:ada" in older
    assert "under way" not in older
    named = re.findall(r'class="badge( needed)?">([^<]+)<', older)
    assert named == [(" needed", name) for name in NEEDED] + [("", "agreed"), ("", "foreign")]
    assert len(named) == len(MatchBucket)
    assert "1,200 payments, <strong>₦46,116,860,184,273,879.04</strong>" in older  # 2**62 kobo
    assert "7 lines, <strong>₦1,234.56</strong>" in older


async def test_the_console_gives_every_page_of_findings_byte_for_byte_as_the_api(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation_runs, "PAGE", 2)
    await with_findings(api, 5)  # three pages
    of_api = await api.client.get(f"/admin/reconciliations/{FIRST}/findings.csv", headers=bearer(admin_token()))
    browser = await Browser(api).sign_in_as_admin()
    (link,) = re.findall(r'href="([^"]+findings\.csv)" download', (await browser.open(PAGE)).text)
    shown = await browser.open(link)
    assert (of_api.status_code, shown.status_code) == (200, 200)
    assert of_api.content.count(b"\r\n") == 6
    assert shown.content == of_api.content
    for name in ("content-type", "content-disposition"):
        assert shown.headers[name] == of_api.headers[name]
    missing = await browser.open(link.replace(FIRST, an_id("rec", 9)))
    assert missing.status_code == 404


async def test_older_runs_are_behind_a_link_and_a_bad_cursor_is_named(api: Api) -> None:
    async with api.services.store.begin() as tx:
        for number in range(1, 53):
            await tx.reconciliations.add(replace(RUN, id=an_id("rec", number), started_by=f"cli:ada-{number}"))
    browser = await Browser(api).sign_in_as_admin()
    seen = []
    newest = (await browser.open(PAGE)).text
    assert "Newest" not in newest
    (older,) = re.findall(r'href="(\?after=[^"]+)" rel="next"', newest)
    oldest = (await browser.open(PAGE + older)).text
    assert 'href="?">Newest' in oldest
    assert 'rel="next"' not in oldest
    for page in (newest, oldest):
        seen += [int(number) for number in re.findall(r"cli:ada-(\d+)", page)]
    assert seen == list(range(52, 0, -1))
    bad = await browser.open(PAGE + "?after=rec_1")
    assert (bad.status_code, "<code>after</code>" in bad.text) == (400, True)
    assert "Nothing was reconciled" not in bad.text


async def test_before_the_first_reconciliation_the_page_says_so(api: Api) -> None:
    browser = await Browser(api).sign_in_as_admin()
    page = (await browser.open("/console/admin/gateways")).text
    assert f'href="{PAGE}"' in page
    assert "Nothing was reconciled yet." in (await browser.open(PAGE)).text
