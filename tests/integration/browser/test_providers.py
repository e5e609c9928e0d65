"""A payer's journeys through the fake providers: out to one and back, and the other's script on our launch page."""

import base64
import json
import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from payagg.entrypoints.dev.fake_providers import FakeServers, WebhookMode
from tests.support.browser import SMALL_PHONE, cut_off, judge_with_axe, opened
from tests.support.checkout_site import Site
from tests.support.provider_rigs import credentials_a, credentials_b

pytestmark = pytest.mark.browser


SITE = {"with_fakes": True}


@pytest.fixture
def site(site: Site) -> Site:
    site.configure("provider_a", credentials_a(fakes(site)), name="Paystack")
    site.configure("provider_b", credentials_b(fakes(site)), name="Payaza", display_order=1)
    for fake in (fakes(site).paystack, fakes(site).payaza):
        fake.book.charges.clear()
        fake.book.webhooks = WebhookMode.NOW
    return site


def fakes(site: Site) -> FakeServers:
    assert site.fakes is not None
    return site.fakes


def started(site: Site, page: Page, name: str, **fields: Any) -> str:
    """A payment whose payer has just chosen the gateway `name`; the address of its page."""
    url = site.initiate(site.business(), **fields)
    page.goto(url)
    page.locator("label.gateway", has_text=name).click()
    page.get_by_role("button", name=f"Continue to {name}").click()
    return url


def popup(page: Page) -> FrameLocator:
    """The provider's frame, once it has taken the launch parameters."""
    frame = page.frame_locator("iframe")
    expect(frame.locator("#amount")).to_have_text("NGN 1500.00")
    return frame


def heading(page: Page, words: str) -> None:
    expect(page.locator("h2:visible")).to_have_text(words)


def test_a_payer_is_redirected_out_pays_and_comes_back(site: Site, page: Page) -> None:
    url = started(site, page, "Paystack")
    expect(page.get_by_role("heading", name="Paystack (fake)")).to_be_visible()
    judge_with_axe(page)
    assert cut_off(page) == []
    page.locator("#pay").click()
    heading(page, "Payment successful")
    assert page.url == url
    assert site.status(url) == "SUCCESS"


@pytest.mark.rule("description.4")
def test_a_refused_card_is_told_in_plain_words_and_another_one_pays(site: Site, page: Page) -> None:
    url = started(site, page, "Paystack")
    page.locator("#insufficient").click()
    heading(page, "Your card was declined")
    expect(page.locator("#waiting-text")).to_contain_text("There was not enough money")
    assert site.status(url) == "PENDING"
    page.get_by_role("button", name="Try another card").click()
    page.locator("#pay").click()
    heading(page, "Payment successful")
    assert [charge.paid for charge in fakes(site).paystack.book.charges.values()] == [1]


def test_a_payer_who_gave_up_may_continue_the_same_charge(site: Site, page: Page) -> None:
    started(site, page, "Paystack")
    page.locator("#abandon").click()
    heading(page, "Waiting for confirmation")
    page.get_by_role("button", name="Not paid yet? Continue").click()
    page.locator("#pay").click()
    heading(page, "Payment successful")
    assert [charge.paid for charge in fakes(site).paystack.book.charges.values()] == [1]


def test_the_browser_s_back_button_shows_the_payment_as_it_stands(site: Site, page: Page) -> None:
    started(site, page, "Paystack")
    expect(page.get_by_role("heading", name="Paystack (fake)")).to_be_visible()
    page.go_back()
    heading(page, "Waiting for confirmation")


def test_a_payer_pays_in_the_provider_s_popup(site: Site, page: Page) -> None:
    url = started(site, page, "Payaza", customer_name="Ngozi Ọkọ́", customer_email="ngozi@example.com")
    frame = popup(page)
    judge_with_axe(page)
    frame.get_by_role("button", name="Pay").click()
    heading(page, "Payment successful")
    assert page.url == url
    assert site.status(url) == "SUCCESS"


def test_after_a_decline_in_the_popup_another_card_pays(site: Site, page: Page) -> None:
    fakes(site).payaza.book.webhooks = WebhookMode.NEVER  # a signed failure would be the end
    url = started(site, page, "Payaza")
    popup(page).get_by_role("button", name="Card is declined").click()
    expect(page.locator("h1:visible")).to_have_text("Your card was declined")
    assert site.status(url) == "PENDING"
    popup(page).get_by_role("button", name="Pay").click()
    heading(page, "Payment successful")
    assert site.status(url) == "SUCCESS"


def test_a_closed_popup_may_be_opened_again(site: Site, page: Page) -> None:
    started(site, page, "Payaza")
    popup(page).get_by_role("button", name="Close").click()
    heading(page, "Waiting for confirmation")
    page.get_by_role("button", name="Not paid yet? Continue").click()
    popup(page).get_by_role("button", name="Pay").click()
    heading(page, "Payment successful")
    assert [charge.paid for charge in fakes(site).payaza.book.charges.values()] == [1]


def test_forged_launch_parameters_are_not_used(site: Site, page: Page) -> None:
    url = started(site, page, "Payaza")
    popup(page).get_by_role("button", name="Close").click()
    heading(page, "Waiting for confirmation")
    forged = {"merchant_key": "PZ78-PKTEST-STRANGER", "connection_mode": "Test", "checkout_amount": 1}
    fragment = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
    page.goto(f"{url}/launch#{fragment}")
    popup(page)
    assert {charge.key for charge in fakes(site).payaza.book.charges.values()} == {"PZ78-PKTEST-CANARY"}


def test_a_script_that_does_not_load_leaves_a_way_on(site: Site, chromium: Browser) -> None:
    with opened(chromium, viewport=SMALL_PHONE, color_scheme="dark", reduced_motion="reduce") as page:
        page.route("**/js/v1/bundle.js", lambda route: route.abort())
        started(site, page, "Payaza")
        expect(page.get_by_role("heading", name="The payment window did not open")).to_be_focused()
        judge_with_axe(page)
        assert cut_off(page) == []
        page.unroute("**/js/v1/bundle.js")
        page.get_by_role("button", name="Try again").click()
        popup(page).get_by_role("button", name="Pay").click()
        heading(page, "Payment successful")


def test_the_launch_page_admits_the_provider_s_origin_and_no_other(site: Site) -> None:
    url = site.initiate(site.business())
    policy = httpx.get(f"{url}/launch").headers["content-security-policy"]
    provider = fakes(site).payaza.base_url
    assert re.search(rf"script-src 'self' 'sha256-[^']+' {re.escape(provider)};", policy)
    assert f"frame-src {provider};" in policy
    assert policy.count("http") == 2
    assert provider not in httpx.get(url).headers["content-security-policy"]
