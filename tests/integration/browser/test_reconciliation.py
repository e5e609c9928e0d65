"""The administrators' page "Reconciliation" in a real browser: how it reads, and its download."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from payagg_testing.builders import REFERENCE, an_id
from playwright.sync_api import Browser, Page, expect

from payagg.domain.reconciliation import MatchBucket, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment
from tests.integration.browser.test_console_admin import LONG_NAME, SITE, go, sign_in
from tests.support.browser import DESK, PHONE, SMALL_PHONE, judge_on_every_screen, opened
from tests.support.checkout_site import Site

__all__ = ["SITE"]
pytestmark = pytest.mark.browser
DAY = date(2025, 1, 30)


async def two_runs(site: Site) -> None:
    """One by a file with the largest sums in every bucket, and one that has not ended."""
    now = site.services.clock.now()
    first, live = an_id("rec", 1), Environment.LIVE
    total = {"payments": 10**7, "ours": 2**62, "lines": 10**7, "theirs": 2**62}
    run = ReconciliationRun(first, "provider_a", live, DAY, DAY, "file " + "0a" * 32, f"cli:{LONG_NAME}", now)
    ended = replace(run, ended_at=now + timedelta(minutes=1), totals={one.value: total for one in MatchBucket})
    finding = ReconciliationFinding(first, 1, MatchBucket.HERE_ONLY, REFERENCE, None, None, None, 5000, None, None)
    async with site.services.store.begin() as tx:
        await tx.reconciliations.add(run)
        await tx.reconciliations.add(replace(run, id=an_id("rec", 2), source="list"))
    async with site.services.store.begin() as tx:
        await tx.reconciliations.end(ended, [finding])


def are_stacked(page: Page) -> bool:
    """Whether what is there stands below what is here."""
    here, there = (page.get_by_text(side, exact=True).first.bounding_box() for side in ("Here", "There"))
    assert here is not None
    assert there is not None
    return there["y"] > here["y"]


def test_the_page_is_accessible_cuts_nothing_off_and_has_its_findings_downloaded(chromium: Browser, site: Site) -> None:
    site.do(two_runs(site))
    with opened(chromium) as page:
        sign_in(page, site)
        go(page, "Reconciliation")
        expect(page.get_by_role("heading", level=1)).to_have_text("Reconciliation")
        judge_on_every_screen(page)
        for viewport, is_narrow in ((SMALL_PHONE, True), (PHONE, True), (DESK, False)):
            page.set_viewport_size(viewport)
            assert are_stacked(page) is is_narrow
        with page.expect_download() as started:
            page.get_by_role("link", name="Findings as CSV").click()
        assert started.value.suggested_filename == f"{an_id('rec', 1)}.csv"
        lines = Path(started.value.path()).read_text().splitlines()
        assert lines[1] == f"HERE_ONLY,{REFERENCE},,,,5000,,"
