"""A business's overview in a real browser: a busy month with all that it can show, and a LIVE without anything."""

import pytest
from playwright.sync_api import Browser, expect

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.business import Role
from tests.integration.browser.test_adjustments import sign_in
from tests.integration.http.test_console_overview import DAY, ended
from tests.support.browser import judge_on_every_screen, opened
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser
LARGEST = 2**53 - 1  # kobo, of one payment
SILENT_CARD = "4000000000000119"


async def busy(site: Site) -> None:
    """Sixty days with payments of every end, some without any, and sums as long as they get."""
    store, now = site.services.store, site.services.clock.now()
    assert isinstance(store, PostgresStore)
    async with store.begin() as tx:
        await tx.members.add("biz_1", "ada", Role.OWNER)
    for ago in (ago for ago in range(1, 60) if ago % 7 not in (2, 3)):
        letters, status = f"{ago:02d}", ("SUCCESS", "SUCCESS", "FAILED", "REVERSED")[ago % 4]
        many, amount = 1 + ago % 5, LARGEST - 10**13 * ago
        await ended(store, "biz_1", letters, now - ago * DAY, amount, many=many, status=status)


@pytest.mark.release
def test_a_busy_month_and_an_empty_live_are_accessible_and_fit(chromium: Browser, site: Site) -> None:
    business = site.business(name="Ada's Shop")
    site.do(busy(site))
    site.hand_off(site.initiate(business), card=SILENT_CARD)
    site.initiate(business)
    with opened(chromium) as page:
        sign_in(page, site, "merchant")
        for path, plots in (("sandbox?days=7", 2), ("sandbox?days=30", 2), ("live", 0)):
            page.goto(f"{site.base_url}/console/business/{business.id}/{path}")
            expect(page.locator(".plot")).to_have_count(plots)
            judge_on_every_screen(page)
