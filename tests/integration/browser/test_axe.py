"""The hosted page before axe-core, in each state that has parts of its own: dark on a small phone, light on a desk."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.integration.browser.test_checkout import CHOICE, SILENT_CARD, SUCCESS_CARD, answering, pay_with
from tests.support.browser import SMALL_PHONE, heading, judge_on_every_screen, opened, press, shown
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser

LONG_NAME = "Chukwuemeka Okonkwo-Adeyemi & Daughters Wholesale Enterprises Nigeria " + "Limited" * 6
LONG_DESCRIPTION = "Card, bank transfer or USSD. " * 12


def choose(site: Site, page: Page) -> None:
    """The largest amount to the longest name, with an option that is not available."""
    business = site.business(name=LONG_NAME)
    site.gateway("provider_a", name="Paystack" * 8, description=LONG_DESCRIPTION)
    site.configure("provider_b", {"sandboxPublicKey": "PZ78-PKTEST-1", "sandboxSigningSecret": "s"}, name="Payaza")
    page.goto(site.initiate(business, 2**53 - 1))
    heading(page, CHOICE)
    page.get_by_label("Sandbox simulator").check()


def pay(number: str, words: str) -> Callable[[Site, Page], None]:
    def bring(site: Site, page: Page) -> None:
        choose(site, page)
        pay_with(page, number)
        heading(page, words)

    return bring


def refused(site: Site, page: Page) -> None:
    choose(site, page)
    page.route("**/process", answering(400, "GATEWAY_NOT_AVAILABLE", field="gatewaySlug"))
    pay_with(page, SUCCESS_CARD)
    expect(page.get_by_role("alert")).to_contain_text("cannot take this payment right now")


def receipt(site: Site, page: Page) -> None:
    pay(SUCCESS_CARD, "Payment successful")(site, page)
    press(page, "Stay on this page")


def declined_card(site: Site, page: Page) -> None:
    declined = {"success": True, "data": {"status": "PENDING", "lastDecline": "EXPIRED_CARD"}}
    page.route("**/verify", lambda route: route.fulfill(json=declined))
    pay(SILENT_CARD, "Your card was declined")(site, page)


def mismatch(site: Site, page: Page) -> None:
    page.route("**/verify", answering(502, "PAYMENT_AMOUNT_MISMATCH"))
    pay(SILENT_CARD, "This payment needs a check")(site, page)
    shown(page, "Please do not pay again.")


def expired(site: Site, page: Page) -> None:
    site.business(name=LONG_NAME)
    page.goto(site.put_expired())
    heading(page, "This payment link has expired")


def not_loaded(site: Site, page: Page) -> None:
    page.route("**/checkout.js", lambda route: route.abort())
    page.goto(site.initiate(site.business(name=LONG_NAME)))
    expect(page.get_by_role("link", name="Try again")).to_be_visible()


STATES: dict[str, Callable[[Site, Page], None]] = {
    "choose": choose,
    "refused": refused,
    "waiting": pay(SILENT_CARD, "Waiting for confirmation"),
    "declined card": declined_card,
    "receipt": receipt,
    "mismatch": mismatch,
    "expired": expired,
    "not loaded": not_loaded,
}


@pytest.mark.release
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(site: Site, chromium: Browser, state: str) -> None:
    with opened(chromium, viewport=SMALL_PHONE, reduced_motion="reduce") as page:
        STATES[state](site, page)
        judge_on_every_screen(page)
