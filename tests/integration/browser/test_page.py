"""What the hosted page is before, without and after its scripts: drawn by the server, true in any browser, printed."""

import re
from collections.abc import Iterator

import pytest
from payagg_testing.builders import AN_ADMIN
from playwright.sync_api import Browser, Page, expect

from payagg.domain.values import Environment
from tests.integration.browser.test_checkout import SILENT_CARD, SUCCESS_CARD, choosing, pay_with, waiting
from tests.support.browser import heading, opened, press, shown
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser

CALLBACK_PATTERN = "https://shop.example/**"
PAYSTACK_KEY = {"sandboxSecretKey": "sk_test_" + "a" * 40}
# What Chrome 80 or Safari 13 lacks of what browsers of today have, by name; some of it the one, some the other.
LACKING = """
for (const [owner, names] of [
  [String.prototype, ["replaceAll", "at", "isWellFormed", "toWellFormed"]],
  [Array.prototype, ["at", "findLast", "findLastIndex", "toSorted", "toReversed", "toSpliced", "with"]],
  [Object, ["hasOwn", "groupBy"]], [Promise, ["any", "allSettled", "withResolvers", "try"]],
  [Element.prototype, ["replaceChildren", "setHTMLUnsafe", "checkVisibility", "getAnimations"]],
  [Document.prototype, ["replaceChildren", "startViewTransition"]], [AbortSignal, ["timeout", "any"]],
  [AbortSignal.prototype, ["throwIfAborted"]], [URL, ["canParse", "parse"]], [Response, ["json"]],
  [Crypto.prototype, ["randomUUID"]], [Navigator.prototype, ["clipboard"]],
  [window, ["structuredClone", "queueMicrotask", "requestIdleCallback", "BigInt", "WeakRef", "AggregateError",
            "ResizeObserver", "navigation", "cookieStore", "reportError", "CSSStyleSheet", "scheduler"]],
]) for (const name of names) { delete owner[name]; }
"""


@pytest.fixture
def unscripted(chromium: Browser) -> Iterator[Page]:
    """A page on which no script runs."""
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 320, "height": 640})
    yield context.new_page()
    context.close()


def test_without_scripts_the_page_says_what_is_to_be_paid_and_what_to_do(site: Site, unscripted: Page) -> None:
    business = site.business(name="Ada's Shop")
    site.configure("provider_a", PAYSTACK_KEY, name="Paystack", description="Card, bank transfer or USSD")
    url = site.initiate(business)
    unscripted.goto(url)
    for words in ("Ada's Shop", "₦1,500.00", url[-19:], "Card, bank transfer or USSD", "No real money moves"):
        expect(unscripted.get_by_text(words).first).to_be_visible()
    expect(unscripted.locator("noscript p")).to_contain_text(re.compile(f"needs JavaScript.*{url}", re.DOTALL))
    expect(unscripted.locator("#countdown")).to_have_text(re.compile(r"^\d\d:\d\d$"))
    expect(unscripted.locator(".needs-scripts:visible, .spinner:visible, .help:visible")).to_have_count(0)
    expect(unscripted.get_by_role("link", name="Go back to Ada's Shop")).to_be_visible()


def test_without_scripts_a_waiting_page_asks_again_until_there_is_a_result(site: Site, unscripted: Page) -> None:
    url = site.initiate(site.business(name="Ada's Shop"))
    site.hand_off(url, card=SILENT_CARD)
    unscripted.goto(url)
    heading(unscripted, "Waiting for confirmation")
    assert '<meta http-equiv="refresh"' in unscripted.content()
    expect(unscripted.locator(".spinner:visible, button:visible")).to_have_count(0)
    site.simulate(url, "SUCCESS")
    unscripted.reload()
    heading(unscripted, "Payment successful")
    assert '<meta http-equiv="refresh"' not in unscripted.content()


def test_the_oldest_browsers_that_work_have_all_that_the_scripts_use(site: Site, chromium: Browser) -> None:
    with opened(chromium) as page:
        page.add_init_script(LACKING)
        choosing(site, page)
        assert page.evaluate("!!(''.replaceAll || AbortSignal.timeout || navigator.clipboard)") is False
        press(page, "Copy")
        expect(page.locator("#announce")).to_have_text(re.compile("The reference is (copied|marked)"))
        pay_with(page, SUCCESS_CARD)
        heading(page, "Payment successful")


def test_an_older_browser_is_told_the_truth(site: Site, chromium: Browser) -> None:
    with opened(chromium) as page:
        page.add_init_script("delete String.prototype.matchAll")
        page.goto(site.initiate(site.business()))
        shown(page, "This browser is too old for this page")
        expect(page.locator(".needs-scripts:visible, .spinner:visible")).to_have_count(0)
        expect(page.locator("#amount")).to_have_text("₦1,500.00")


@pytest.mark.parametrize("name", ["checkout.js", "view.js"])
def test_a_refused_script_leaves_a_way_to_try_again_at_once(site: Site, page: Page, name: str) -> None:
    page.route(f"**/{name}", lambda route: route.abort())
    page.goto(site.initiate(site.business()))
    again = page.get_by_role("link", name="Try again")
    expect(again).to_be_visible(timeout=5_000)
    expect(page.locator("#amount")).to_have_text("₦1,500.00")
    page.unroute(f"**/{name}")
    again.click()
    expect(page.locator("#pay")).to_be_enabled()
    expect(again).to_be_hidden()


def test_a_script_that_never_comes_leaves_a_way_within_ten_seconds(site: Site, page: Page) -> None:
    page.route("**/checkout.js", lambda route: None)  # no answer, ever
    url = site.initiate(site.business())
    site.hand_off(url, card=SILENT_CARD)
    page.clock.install()
    page.goto(url, wait_until="commit")
    page.locator("main").wait_for()
    page.clock.run_for(9_500)
    expect(page.get_by_role("link", name="Try again")).to_be_visible()
    expect(page.locator(".spinner:visible")).to_have_count(0)


def test_after_success_the_payer_reads_a_receipt_and_is_taken_back(site: Site, page: Page) -> None:
    page.route(CALLBACK_PATTERN, lambda route: route.fulfill(body="<h1>Thanks</h1>", content_type="text/html"))
    url = site.initiate(site.business(name="Ada's Shop"))
    page.goto(url)
    advice = page.get_by_text("only on the payment provider's own page")
    expect(advice).to_be_visible()
    pay_with(page, SUCCESS_CARD)
    heading(page, "Payment successful")
    expect(advice).to_have_count(0)  # it is for who chooses
    expect(page.get_by_role("main")).not_to_contain_text("nothing more to do")
    expect(page.locator("#returning")).to_contain_text("Taking you back to Ada's Shop in 4 seconds")
    for words in ("Sandbox simulator", re.compile(r"\d{1,2} \w+ 20\d\d, \d\d:\d\d \(Lagos time\)")):
        expect(page.locator(".receipt")).to_contain_text(words)
    page.wait_for_url(CALLBACK_PATTERN)
    assert page.url.endswith(f"&reference={url[-19:]}&status=SUCCESS")
    page.go_back()
    heading(page, "Payment successful")
    expect(page.locator("#stay")).to_be_hidden()  # once is enough


def test_a_receipt_of_a_payment_without_a_gateway_has_no_empty_line(site: Site, unscripted: Page) -> None:
    url = site.initiate(site.business())
    site.simulate(url, "SUCCESS")
    unscripted.goto(url)
    expect(unscripted.locator(".receipt dt")).to_have_text(["Date"])


def test_a_failure_and_a_link_opened_later_take_nobody_anywhere(site: Site, page: Page, chromium: Browser) -> None:
    site.simulate(waiting(site, page), "FAILED")
    heading(page, "Payment not completed")
    expect(page.locator("#returning")).to_have_count(0)
    with opened(chromium) as elsewhere:
        paid = site.initiate(site.business(id="biz_2"))
        site.do(site.services.payments.simulate(paid[-19:], "SUCCESS", "biz_2", by=AN_ADMIN))
        elsewhere.goto(paid)
        heading(elsewhere, "Payment successful")
        expect(elsewhere.locator("#stay")).to_be_hidden()


def test_a_second_tab_and_a_reload_show_the_payment_as_it_stands(site: Site, chromium: Browser) -> None:
    with opened(chromium) as first:
        url = choosing(site, first)
        second = first.context.new_page()
        second.goto(url)
        pay_with(first, SUCCESS_CARD)
        heading(first, "Payment successful")
        second.get_by_role("button", name="Pay ₦").wait_for()
        pay_with(second, SUCCESS_CARD)  # a tab that still shows the choice
        heading(second, "Payment successful")
        first.reload()
        heading(first, "Payment successful")


def test_an_expired_link_of_a_live_payment_is_told_before_any_script(site: Site, unscripted: Page) -> None:
    site.business(name="Ada's Shop")
    unscripted.goto(site.put_expired(environment=Environment.LIVE))
    heading(unscripted, "This payment link has expired")
    shown(unscripted, "go back to Ada's Shop and start a new payment")
    expect(unscripted.locator("#test-mode, #window")).to_have_count(0)
