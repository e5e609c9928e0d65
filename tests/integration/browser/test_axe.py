"""The hosted page before axe-core, in each state that has parts of its own: dark on a small phone, light on a desk."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.integration.browser.test_checkout import SILENT_CARD, SUCCESS_CARD, answering, heading, pay_with
from tests.support.browser import SMALL_PHONE, judge_on_every_screen, opened
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser

LONG_NAME = "Chukwuemeka Okonkwo-Adeyemi & Daughters Wholesale Enterprises Nigeria " + "Limited" * 6
LONG_DESCRIPTION = "Card, bank transfer or USSD. " * 12


def choose(site: Site, page: Page) -> str:
    """The largest amount to the longest name, with an option that is not available."""
    business = site.business(name=LONG_NAME)
    site.gateway("provider_a", name="Paystack" * 8, description=LONG_DESCRIPTION)
    site.configure("provider_b", {"sandboxPublicKey": "PZ78-PKTEST-1", "sandboxSigningSecret": "s"}, name="Payaza")
    url = site.initiate(business, 2**53 - 1)
    page.goto(url)
    heading(page, "How would you like to pay?")
    page.get_by_label("Sandbox simulator").check()
    return url


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
    page.get_by_role("button", name="Stay on this page").click()


def declined_card(site: Site, page: Page) -> None:
    page.route("**/verify", answering_with({"status": "PENDING", "lastDecline": "EXPIRED_CARD"}))
    choose(site, page)
    pay_with(page, SILENT_CARD)
    heading(page, "Your card was declined")


def mismatch(site: Site, page: Page) -> None:
    page.route("**/verify", answering(502, "PAYMENT_AMOUNT_MISMATCH"))
    pay(SILENT_CARD, "This payment needs a check")(site, page)
    expect(page.get_by_text("Please do not pay again.")).to_be_visible()


def expired(site: Site, page: Page) -> None:
    site.business(name=LONG_NAME)
    page.goto(site.put(ttl=timedelta(milliseconds=1)))
    heading(page, "This payment link has expired")


def not_loaded(site: Site, page: Page) -> None:
    page.route("**/checkout.js", lambda route: route.abort())
    page.goto(site.initiate(site.business(name=LONG_NAME)))
    expect(page.get_by_role("link", name="Try again")).to_be_visible()


def answering_with(data: dict[str, str]) -> Callable[..., None]:
    return lambda route: route.fulfill(json={"success": True, "data": data})


STATES: dict[str, Callable[[Site, Page], object]] = {
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
