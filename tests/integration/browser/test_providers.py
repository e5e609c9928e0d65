"""A payer's journeys through the fake providers: out to one and back, and the other's script on our launch page."""

import base64
import json
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from payagg.entrypoints.dev.fake_providers import WebhookMode
from payagg.entrypoints.dev.fake_providers.book import Book
from tests.support.browser import SMALL_PHONE, cut_off, heading, judge_with_axe, opened, press
from tests.support.checkout_site import Site
from tests.support.provider_rigs import credentials_a, credentials_b

pytestmark = pytest.mark.browser
SITE = {"with_fakes": True}


@pytest.fixture
def site(site: Site) -> Site:
    site.configure("provider_a", credentials_a(site.fakes), name="Paystack")
    site.configure("provider_b", credentials_b(site.fakes), name="Payaza", display_order=1)
    for book in (site.fakes.paystack.book, site.fakes.payaza.book):
        book.charges.clear()
        book.webhooks = WebhookMode.NOW
    return site


def started(site: Site, page: Page, name: str, **fields: Any) -> str:
    """A payment whose payer has just chosen the gateway `name`; the address of its page."""
    url = site.initiate(site.business(), **fields)
    page.goto(url)
    page.locator("label.gateway", has_text=name).click()
    press(page, f"Continue to {name}")
    return url


def popup(page: Page) -> FrameLocator:
    """The provider's frame, once it has taken the launch parameters."""
    frame = page.frame_locator("iframe")
    expect(frame.locator("#amount")).to_have_text("NGN 1500.00")
    return frame


def succeeds(site: Site, page: Page, url: str, book: Book) -> None:
    """The payer is on our page again, and paid once."""
    heading(page, "Payment successful")
    assert (page.url, site.status(url)) == (url, "SUCCESS")
    assert [charge.paid for charge in book.charges.values()] == [1]


@pytest.mark.rule("description.4")
def test_a_refused_card_is_told_in_plain_words_and_another_one_pays(site: Site, page: Page) -> None:
    url = started(site, page, "Paystack")
    page.locator("#insufficient").click()
    heading(page, "Your card was declined")
    expect(page.locator("#waiting-text")).to_contain_text("There was not enough money")
    assert site.status(url) == "PENDING"
    press(page, "Try another card")
    page.locator("#pay").click()
    succeeds(site, page, url, site.fakes.paystack.book)


@pytest.mark.parametrize(
    ("words", "title"),
    [("Transaction cancelled by user", "Payment cancelled"), ("Timed out", "The bank did not answer in time")],
)
def test_what_no_bank_declined_is_not_called_declined(site: Site, page: Page, words: str, title: str) -> None:
    url = started(site, page, "Paystack")
    expect(page.get_by_role("heading", name="Paystack (fake)")).to_be_visible()
    site.fakes.paystack.decline(url[-19:], words)
    page.goto(url)
    heading(page, title)
    expect(page).to_have_title(f"{title} · ₦1,500.00 to Ada's Shop")
    expect(page.locator("#waiting-text")).to_have_text("You have not been charged. You can try another card.")
    assert site.status(url) == "PENDING"


def test_a_payer_who_gave_up_may_continue_the_same_charge(site: Site, page: Page) -> None:
    url = started(site, page, "Paystack")
    expect(page.get_by_role("heading", name="Paystack (fake)")).to_be_visible()
    judge_with_axe(page)
    assert cut_off(page) == []
    page.locator("#abandon").click()
    heading(page, "Waiting for confirmation")
    press(page, "Not paid yet? Continue")
    page.locator("#pay").click()
    succeeds(site, page, url, site.fakes.paystack.book)


def test_the_browser_s_back_button_shows_the_payment_as_it_stands(site: Site, page: Page) -> None:
    started(site, page, "Paystack")
    expect(page.get_by_role("heading", name="Paystack (fake)")).to_be_visible()
    page.go_back()
    heading(page, "Waiting for confirmation")


def test_after_a_decline_in_the_popup_another_card_pays(site: Site, page: Page) -> None:
    site.fakes.payaza.book.webhooks = WebhookMode.NEVER  # a signed failure would be the end
    url = started(site, page, "Payaza")
    press(popup(page), "Card is declined")
    expect(page.locator("h1:visible")).to_have_text("Your card was declined")
    assert site.status(url) == "PENDING"
    press(popup(page), "Pay")
    succeeds(site, page, url, site.fakes.payaza.book)


def test_a_closed_popup_may_be_opened_again_and_takes_no_forged_parameters(site: Site, page: Page) -> None:
    url = started(site, page, "Payaza", customer_name="Ngozi Ọkọ́", customer_email="ngozi@example.com")
    frame = popup(page)
    judge_with_axe(page)
    press(frame, "Close")
    heading(page, "Waiting for confirmation")
    forged = {"merchant_key": "PZ78-PKTEST-STRANGER", "connection_mode": "Test", "checkout_amount": 1}
    fragment = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
    page.goto(f"{url}/launch#{fragment}")
    press(popup(page), "Close")
    heading(page, "Waiting for confirmation")
    press(page, "Not paid yet? Continue")
    press(popup(page), "Pay")
    succeeds(site, page, url, site.fakes.payaza.book)
    assert {charge.key for charge in site.fakes.payaza.book.charges.values()} == {"PZ78-PKTEST-CANARY"}


def test_a_script_that_does_not_load_leaves_a_way_on(site: Site, chromium: Browser) -> None:
    with opened(chromium, viewport=SMALL_PHONE, color_scheme="dark", reduced_motion="reduce") as page:
        page.route("**/js/v1/bundle.js", lambda route: route.abort())
        url = started(site, page, "Payaza")
        expect(page.get_by_role("heading", name="The payment window did not open")).to_be_focused()
        judge_with_axe(page)
        assert cut_off(page) == []
        page.unroute("**/js/v1/bundle.js")
        press(page, "Try again")
        press(popup(page), "Pay")
        succeeds(site, page, url, site.fakes.payaza.book)


def test_the_launch_page_admits_the_provider_s_origin_and_no_other(site: Site) -> None:
    url = site.initiate(site.business())
    policy = httpx.get(f"{url}/launch").headers["content-security-policy"]
    provider = site.fakes.payaza.base_url
    assert re.search(rf"script-src 'self' 'sha256-[^']+' {re.escape(provider)};", policy)
    assert (f"frame-src {provider};" in policy, policy.count("http")) == (True, 2)
    assert provider not in httpx.get(url).headers["content-security-policy"]
