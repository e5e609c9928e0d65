"""What merchants and operators see of a payment's money in a real browser: the adjustments, the fee, the charge."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from payagg_testing.builders import a_payment, a_report, an_attempt
from playwright.sync_api import Browser, Page, expect

from payagg.domain.attempt import AttemptState, ChargeFacts
from payagg.domain.business import Role
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from tests.support.browser import DESK, judge_on_every_screen, opened
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser
PAID, SHORT, QUIET = (f"PAY-20250131-{name}" for name in ("PAID00", "SHORT0", "QUIET0"))
FACTS = ChargeFacts(provider_id="5000000001", channel="card", fee=2250, received=150000)


@pytest.fixture(scope="module")
def site(site_and_database: tuple[Site, str]) -> Site:
    """Its tests only read."""
    site, _ = site_and_database
    site.business(name="Ada's Shop")
    site.do(with_money(site))
    return site


async def with_money(site: Site) -> None:
    services, now = site.services, site.services.clock.now()
    async with services.store.begin() as tx:
        await tx.members.add("biz_1", "ada", Role.OWNER)
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


def sign_in(page: Page, site: Site, realm: str) -> None:
    claims: dict[str, dict[str, Any]] = {
        "merchant": {"sub": "ada", "type": "merchant", "emailVerified": True},
        "admin": {"sub": "admin-1", "type": "admin", "role": "ADMIN"},
    }
    token = site.services.tokens.issue(claims[realm], 3600, int(site.services.clock.now().timestamp()))
    page.goto(site.base_url + {"merchant": "/console/sign-in", "admin": "/console/admin"}[realm])
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def home(site: Site) -> str:
    return f"{site.base_url}/console/business/biz_1/sandbox"


def test_a_merchant_finds_what_needs_attention_and_its_payment(chromium: Browser, site: Site) -> None:
    with opened(chromium, viewport=DESK) as page:
        sign_in(page, site, "merchant")
        page.goto(home(site))
        page.get_by_role("navigation", name="Console").get_by_role("link", name="Adjustments").click()
        cards = page.get_by_role("main").get_by_role("listitem")
        expect(cards).to_have_count(4)
        page.get_by_role("navigation", name="Which").get_by_role("link", name="needs attention").click()
        expect(cards).to_have_count(3)
        expect(page.get_by_role("main")).not_to_contain_text("processed")
        expect(cards.filter(has_text="underpaid")).to_contain_text("Expected ₦1,500.00, received ₦1,490.00")
        expect(cards.filter(has_text="currency mismatch")).to_contain_text("another currency came")
        page.get_by_role("link", name=PAID).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(PAID)
        facts = page.locator(".facts")
        expect(facts).to_contain_text("₦22.50")
        expect(facts).to_contain_text("₦1,477.50")
        expect(cards.filter(has_text="Refund")).to_contain_text("₦500.00")
        expect(cards.filter(has_text="Dispute")).to_contain_text("₦1,500.00")
        expect(page.get_by_text("5000000001")).to_have_count(0)
        page.goto(f"{home(site)}/payments/{QUIET}")
        expect(page.locator(".facts")).to_contain_text("not known")
        expect(cards).to_have_count(0)
        page.goto(f"{home(site)}/adjustments?needsAttention=maybe")
        expect(page.get_by_role("alert")).to_contain_text("needsAttention")
        page.goto(f"{home(site).replace('sandbox', 'live')}/adjustments?needsAttention=true")
        expect(page.get_by_text("Nothing needs attention.")).to_be_visible()


def test_an_operator_finds_the_charge_at_its_provider(chromium: Browser, site: Site) -> None:
    with opened(chromium, viewport=DESK) as page:
        sign_in(page, site, "admin")
        page.goto(f"{site.base_url}/console/admin/payments/{PAID}")
        charge = page.get_by_role("listitem").filter(has_text="Attempt 1 at Paystack")
        for words in ("5000000001", "card", "₦22.50", "31 Jan 2025"):
            expect(charge).to_contain_text(words)


@pytest.mark.release
def test_the_pages_of_money_are_accessible_and_fit(chromium: Browser, site: Site) -> None:
    own = ("/adjustments", "/adjustments?needsAttention=true", f"/payments/{PAID}", f"/payments/{SHORT}")
    pages = {
        "merchant": [home(site) + path for path in own],
        "admin": [f"{site.base_url}/console/admin/payments/{reference}" for reference in (PAID, SHORT)],
    }
    for realm, links in pages.items():
        with opened(chromium) as page:
            sign_in(page, site, realm)
            for link in links:
                page.goto(link)
                judge_on_every_screen(page)
