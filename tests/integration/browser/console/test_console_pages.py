"""The console's pages in a real browser, with all that they can show: accessible, nothing cut off, money in words."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from payagg_testing.builders import REFERENCE, a_key, a_payment, a_report, an_attempt, an_endpoint, an_entry, an_id
from playwright.sync_api import Browser, expect

from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.attempt import AttemptState, ChargeFacts
from payagg.domain.audit import Action
from payagg.domain.reconciliation import MatchBucket, ReconciliationFinding, ReconciliationRun
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from tests.integration.browser.console.test_console_admin import LONG_NAME, a_stuck_payment, sign_in
from tests.integration.http.console.test_console_overview import DAY, ended
from tests.support.browser import DESK, judge_on_every_screen, opened
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser
PAID, SHORT, QUIET = (f"PAY-20250131-{name}" for name in ("PAID00", "SHORT0", "QUIET0"))
FACTS = ChargeFacts(provider_id="5000000001", channel="card", fee=2250, received=150000)
LARGEST = 2**53 - 1  # kobo, of one payment
HOME = "/console/business/biz_1/sandbox"
OF_A_MERCHANT = (
    *("", "?days=30", "/payments", f"/payments/{PAID}", f"/payments/{SHORT}", "/test-payment", "/keys", "/team"),
    *("/webhooks", "/webhooks/whe_1", "/checkout", "/adjustments", "/adjustments?needsAttention=true", "/audit"),
)
OF_AN_ADMINISTRATOR = (
    *("gateways", "gateways/gw_provider_a", "gateways/gw_builtin", "businesses", "businesses/biz_1", "payments"),
    *(f"payments/{REFERENCE}", f"payments/{PAID}", f"payments/{SHORT}", "anomalies", "reconciliation", "audit"),
    *("health", "sessions", "sign-in", "nowhere"),
)


@pytest.fixture(scope="module")
def site(site_and_database: tuple[Site, str]) -> Site:
    """Its tests only read."""
    site, _ = site_and_database
    site.business("ada", name="Ada's Shop")
    site.gateway("provider_a", name="Paystack")
    for fill in (busy, with_money, a_stuck_payment, two_runs):
        site.do(fill(site))
    return site


async def busy(site: Site) -> None:
    """Sixty days with payments of every end, some without any, and sums as long as they get."""
    store, now = site.services.store, site.services.clock.now()
    assert isinstance(store, PostgresStore)
    async with store.begin() as tx:
        await tx.api_keys.add(a_key())
        await tx.endpoints.add(an_endpoint())
        url = {"before": None, "after": f"https://shop.example/{'hooks' * 99}"}
        await tx.audit.add(an_entry(1, Action.WEBHOOK_CREATE, "whe_1", business_id="biz_1", changes={"url": url}))
    for ago in (ago for ago in range(1, 60) if ago % 7 not in (2, 3)):
        letters, status = f"{ago:02d}", ("SUCCESS", "SUCCESS", "FAILED", "REVERSED")[ago % 4]
        await ended(store, "biz_1", letters, now - ago * DAY, LARGEST - 10**13 * ago, many=1 + ago % 2, status=status)


async def with_money(site: Site) -> None:
    services, now = site.services, site.services.clock.now()
    for reference in (PAID, SHORT, QUIET):
        payment, _ = await services.store.add_payment(a_payment(reference=reference, now=now))
        async with services.store.begin() as tx:
            await tx.attempts.add(an_attempt(payment, 1, AttemptState.HANDED_OFF, now=now))
            await services.settlement.write(tx, *payment.hand_over("provider_a", now, "payer"))
    back, dispute = frozenset({50000}), {"disputeId": "7", "state": "opened", "dueAt": "2026-12-01T00:00:00+00:00"}
    received = ChargeFacts(received=149000)
    for report in (
        a_report(provider_reference=PAID, facts=replace(FACTS, paid_at=datetime(2025, 1, 31, tzinfo=UTC))),
        a_report(Outcome.REVERSED, provider_reference=PAID, amounts=back, details={"refundId": "1"}),
        a_report(Outcome.DISPUTED, provider_reference=PAID, amounts=frozenset(), details=dispute),
        a_report(provider_reference=SHORT, amounts=frozenset({149000}), facts=received),
        a_report(provider_reference=SHORT, currency="USD", facts=ChargeFacts(received=150000)),
        a_report(provider_reference=QUIET),
    ):
        await services.settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a")


async def two_runs(site: Site) -> None:
    """One by a file with the largest sums in every bucket, and one that has not ended."""
    now, day, first = site.services.clock.now(), date(2025, 1, 30), an_id("rec", 1)
    total = {"payments": 10**7, "ours": 2**62, "lines": 10**7, "theirs": 2**62}
    whose = ("file " + "0a" * 32, f"cli:{LONG_NAME}", now)
    run = ReconciliationRun(first, "provider_a", Environment.LIVE, day, day, *whose)
    done = replace(run, ended_at=now + timedelta(minutes=1), totals={one.value: total for one in MatchBucket})
    finding = ReconciliationFinding(first, 1, MatchBucket.HERE_ONLY, REFERENCE, None, None, None, 5000, None, None)
    async with site.services.store.begin() as tx:
        await tx.reconciliations.add(run)
        await tx.reconciliations.add(replace(run, id=an_id("rec", 2), source="list"))
    async with site.services.store.begin() as tx:
        await tx.reconciliations.end(done, [finding])


def test_a_merchant_finds_what_needs_attention_and_its_payment(chromium: Browser, site: Site) -> None:
    with opened(chromium, viewport=DESK) as page:
        sign_in(page, site, "ada", "/console")
        page.goto(site.base_url + HOME)
        page.get_by_role("navigation", name="Console").get_by_role("link", name="Adjustments").click()
        cards = page.get_by_role("main").get_by_role("listitem")
        expect(cards.filter(has_text=PAID)).to_have_count(2)
        page.get_by_role("navigation", name="Which").get_by_role("link", name="needs attention").click()
        expect(cards.filter(has_text=PAID)).to_have_count(1)
        expect(page.get_by_role("main")).not_to_contain_text("processed")
        expect(cards.filter(has_text="underpaid")).to_contain_text("Expected ₦1,500.00, received ₦1,490.00")
        expect(cards.filter(has_text="currency mismatch")).to_contain_text("another currency came")
        page.get_by_role("link", name=PAID).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(PAID)
        for words in ("₦22.50", "₦1,477.50"):
            expect(page.locator(".facts")).to_contain_text(words)
        expect(cards.filter(has_text="Refund")).to_contain_text("₦500.00")
        expect(cards.filter(has_text="Dispute")).to_contain_text("₦1,500.00")
        expect(page.get_by_text("5000000001")).to_have_count(0)
        page.goto(f"{site.base_url}{HOME}/payments/{QUIET}")
        expect(page.locator(".facts")).to_contain_text("not known")
        page.goto(f"{site.base_url}{HOME}/adjustments?needsAttention=maybe")
        expect(page.get_by_role("alert")).to_contain_text("needsAttention")
        page.goto(f"{site.base_url}{HOME.replace('sandbox', 'live')}/adjustments?needsAttention=true")
        expect(page.get_by_text("Nothing needs attention.")).to_be_visible()


@pytest.mark.release
def test_every_page_of_a_merchant_is_accessible_and_fits(chromium: Browser, site: Site) -> None:
    with opened(chromium) as page:
        sign_in(page, site, "ada", "/console")
        paths = [HOME + path for path in OF_A_MERCHANT] + [HOME.replace("sandbox", "live")]
        for path in (*paths, *(f"/console/{name}" for name in ("sign-in", "businesses", "sessions", "nowhere"))):
            page.goto(site.base_url + path)
            expect(page.locator(".plot")).to_have_count(2 if path in paths[:2] else 0)
            judge_on_every_screen(page)


@pytest.mark.release
def test_every_page_of_an_administrator_is_accessible_and_fits(chromium: Browser, site: Site) -> None:
    with opened(chromium) as page:
        sign_in(page, site)
        for path in OF_AN_ADMINISTRATOR:
            page.goto(f"{site.base_url}/console/admin/{path}")
            for hidden in page.locator("details").all():
                hidden.evaluate("(part) => { part.open = true; }")
            judge_on_every_screen(page)
            page.set_viewport_size(DESK)
            lines = "(times) => times.map((time) => time.getClientRects().length)"
            assert max(page.locator("td time").evaluate_all(lines), default=0) <= 2, path  # a day and a time
            if path.endswith(PAID):
                charge = page.get_by_role("listitem").filter(has_text="Attempt 1 at Paystack")
                for words in ("5000000001", "card", "₦22.50", "31 Jan 2025"):
                    expect(charge).to_contain_text(words)
