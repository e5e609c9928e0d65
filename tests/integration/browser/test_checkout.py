"""A payer's journeys on the hosted page, with the sandbox processor and a real browser."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import NoReturn

import httpx
import pytest
from litestar.testing import TestClient
from playwright.sync_api import Page, Request, Route, expect

from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.health import Health
from payagg.domain.simulator import TEST_CARDS
from payagg.domain.values import Environment
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.http.checkout_page.markup import ASSETS
from payagg.entrypoints.http.checkout_page.words import NO_OPTION
from tests.support.assembly import with_parts
from tests.support.browser import heading, press, shown
from tests.support.checkout_site import Site, served

pytestmark = pytest.mark.browser
CHOICE = "How would you like to pay?"
REQUESTS_MAX, PAGE_MAX = 6, 20 * 1024  # of a payer who opens the link: bytes of all answers with their headers

SUCCESS_CARD = "4242424242424242"
SILENT_CARD = "4000000000000119"
XSS = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>{{7*7}}"


def choosing(site: Site, page: Page, amount: int = 150_000) -> str:
    """A payer before the choice; the address of the page."""
    url = site.initiate(site.business(), amount)
    page.goto(url)
    heading(page, CHOICE)
    return url


def pay_with(page: Page, number: str) -> None:
    page.locator(f'[data-number="{number}"]').click()
    press(page, "Pay ₦")


def waiting(site: Site, page: Page) -> str:
    """A payer whose card gives no answer; the address of the page."""
    url = choosing(site, page)
    pay_with(page, SILENT_CARD)
    heading(page, "Waiting for confirmation")
    return url


def answering(status: int, code: str, *, field: str | None = None) -> Callable[[Route], None]:
    """A stand-in for a refusal that the sandbox cannot be brought to give."""
    body = json.dumps({"success": False, "error": {"code": code, "message": "", "field": field}})
    return lambda route: route.fulfill(status=status, content_type="application/json", body=body)


# What each test card shows and leaves behind.
CARD_RESULTS = {
    "success": ("Payment successful", "SUCCESS"),
    "declined": ("Payment declined", "FAILED"),
    "insufficient_funds": ("Not enough funds", "FAILED"),
    "reversed": ("Payment reversed", "REVERSED"),
    "slow_success": ("Waiting for confirmation", "PENDING"),
    "no_answer": ("Waiting for confirmation", "PENDING"),
}


@pytest.mark.rule("checkout.3")
@pytest.mark.parametrize("number", TEST_CARDS)
def test_each_test_card_leads_to_its_result(site: Site, page: Page, number: str) -> None:
    url = choosing(site, page)
    pay_with(page, number)
    words, status = CARD_RESULTS[TEST_CARDS[number]]
    heading(page, words)
    assert site.status(url) == status


def test_amounts_are_exact(site: Site, page: Page) -> None:
    business = site.business()
    for amount, words in ((100, "₦1.00"), (150_005, "₦1,500.05"), (2**53 - 1, "₦90,071,992,547,409.91")):
        page.goto(site.initiate(business, amount))
        expect(page.locator("#amount")).to_have_text(words)


@pytest.mark.rule("checkout.8")
def test_a_sandbox_payment_says_so_and_a_live_one_lists_no_simulator(site: Site, page: Page) -> None:
    choosing(site, page)
    shown(page, "No real money moves")
    page.goto(site.put(environment=Environment.LIVE))
    expect(page.get_by_role("alert")).to_have_text(re.compile("No payment option is available"))
    expect(page.locator("#test-mode")).to_be_hidden()
    expect(page.locator('input[value="sandbox"]')).to_have_count(0)


def test_a_stored_script_address_never_becomes_a_link(site: Site, page: Page) -> None:
    site.business()
    page.goto(site.put(callback_url="javascript:alert(1)"))
    heading(page, CHOICE)
    expect(page.locator("a.home:visible")).to_have_count(0)


def test_neither_a_wrong_clock_nor_what_a_provider_adds_to_the_address_decides_anything(site: Site, page: Page) -> None:
    page.add_init_script("const now = Date.now; Date.now = () => now() + 5 * 3600000;")
    url = site.initiate(site.business())
    page.goto(f"{url}?trxref={url[-19:]}&reference={url[-19:]}&status=success")
    heading(page, CHOICE)
    assert page.url == url
    expect(page.locator("#countdown")).to_have_text(re.compile(r"^(60:00|59:\d\d)$"))


def test_a_keyboard_alone_is_enough(site: Site, page: Page) -> None:
    choosing(site, page)
    reached = []
    while "card-number" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        assert len(reached) < 10
    page.keyboard.type(SUCCESS_CARD)
    expect(page.locator("#card-number")).to_have_value("4242 4242 4242 4242")
    page.keyboard.press("Enter")
    heading(page, "Payment successful")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Return to")).to_be_focused()


def test_a_number_that_is_no_test_card_never_leaves_the_page(site: Site, page: Page) -> None:
    choosing(site, page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.locator("#card-number").fill("5399 8383 8383 8381")
    press(page, "Pay ₦")
    shown(page, "This is no test card. Choose one below; never type a real card number here.")
    expect(page.locator("#card-number")).to_be_focused()
    assert sent == []


def test_a_gateway_that_is_not_configured_or_unhealthy_says_so_and_cannot_be_chosen(site: Site, page: Page) -> None:
    business = site.business()
    site.gateway("provider_a", name="Paystack")
    page.goto(site.initiate(business))
    option = page.locator("label.gateway", has_text="Paystack")
    expect(option).to_contain_text("Not available for this payment")
    expect(option.locator("input")).to_be_disabled()
    expect(page.locator('input[value="sandbox"]')).to_be_checked()
    site.configure("provider_a", {"sandboxSecretKey": "sk_test_" + "a" * 40}, name="Paystack")
    page.reload()
    expect(page.locator('input[value="provider_a"]')).to_be_checked()
    expect(page.locator("#pay")).to_have_text("Continue to Paystack")
    ill = Health("provider_a", Environment.SANDBOX, 5, site.services.clock.now() + timedelta(minutes=5))
    site.within(lambda tx: tx.health.save(ill))
    page.reload()
    expect(option).to_contain_text("Not available right now. Try again")
    expect(page.locator('input[value="sandbox"]')).to_be_checked()


def test_a_hidden_page_asks_nothing_until_it_is_seen(site: Site, page: Page) -> None:
    url = waiting(site, page)
    page.add_init_script("Object.defineProperty(document, 'hidden', {configurable: true, get: () => !window.isSeen})")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/verify") else None)
    page.goto(url)
    heading(page, "Waiting for confirmation")
    assert asked == []
    with page.expect_request("**/verify"):
        page.evaluate("window.isSeen = true; document.dispatchEvent(new Event('visibilitychange'))")


def test_the_window_closes_while_the_page_is_open(site: Site, page: Page) -> None:
    site.business()
    page.goto(site.put(ttl=timedelta(seconds=3)))
    heading(page, CHOICE)
    heading(page, "This payment link has expired")


def test_what_goes_wrong_while_choosing_leaves_the_choice_open(site: Site, page: Page) -> None:
    choosing(site, page)
    alert = page.get_by_role("alert")
    page.route("**/api/v1/**", lambda route: route.abort())
    pay_with(page, SUCCESS_CARD)
    expect(alert).to_contain_text("We could not reach the payment service.")
    expect(page.locator("#card-number")).to_have_value("4242 4242 4242 4242")
    page.unroute("**/api/v1/**")
    not_available = answering(400, "GATEWAY_NOT_AVAILABLE", field="gatewaySlug")
    for answer, words in (
        (answering(503, "SERVICE_UNAVAILABLE"), "trying again never charges you twice"),
        (not_available, "Sandbox simulator cannot take this payment right now"),
    ):
        page.route("**/process", answer)
        press(page, "Pay ₦")
        expect(alert).to_contain_text(words)
        heading(page, CHOICE)
        expect(page.locator("h2:visible")).to_be_focused()
        page.unroute("**/process")
    press(page, "Pay ₦")
    heading(page, "Payment successful")


def test_after_a_refusal_the_page_advises_only_what_is_left(site: Site, page: Page) -> None:
    site.business()
    site.configure("provider_a", {"liveSecretKey": "sk_live_" + "a" * 40}, name="Paystack")
    site.configure("provider_b", {"livePublicKey": "PZ78-PKLIVE-" + "a" * 24, "liveSigningSecret": "s"}, name="Payaza")
    page.goto(site.put(environment=Environment.LIVE))
    alert, pay = page.get_by_role("alert"), page.locator("#pay")
    site.gateway("provider_a", name="Paystack")  # its credentials are gone
    pay.click()
    expect(alert).to_have_text(re.compile("you have not been charged. Please choose another option.$"))
    expect(pay).to_have_text("Continue to Payaza")
    page.route("**/process", answering(400, "GATEWAY_NOT_AVAILABLE", field="gatewaySlug"))
    pay.click()
    expect(alert).to_have_text(re.compile("^Payaza .* you have not been charged. Please try again.$"))
    page.unroute("**/process")
    site.gateway("provider_b", name="Payaza")  # its credentials are gone
    pay.click()
    expect(alert).to_have_text(NO_OPTION)
    expect(pay).to_have_text("Check again")


def test_unreachable_when_the_result_comes_then_back(site: Site, page: Page) -> None:
    url = waiting(site, page)
    page.route(url, lambda route: route.abort())
    site.simulate(url, "SUCCESS")
    heading(page, "You seem to be offline")
    page.unroute(url)
    press(page, "Try again")
    heading(page, "Payment successful")


def test_hostile_names_are_shown_as_text(site: Site, page: Page) -> None:
    business = site.business(name=XSS[:200])
    site.gateway("provider_a", name=XSS[:100], description=XSS)
    page.goto(site.initiate(business))
    expect(page.locator("#business")).to_have_text(XSS[:200])
    expect(page.locator("label.gateway:has([value=provider_a]) .what")).to_have_text(XSS[:100])
    expect(page.locator("main img, main script")).to_have_count(0)


def test_a_forged_launch_link_leads_back_to_the_page(site: Site, page: Page) -> None:
    url = site.initiate(site.business())
    page.route("https://checkout-v2.payaza.africa/**", lambda route: route.abort())
    page.goto(f"{url}/launch#eyJtZXJjaGFudF9rZXkiOiJQWjc4LVBLTElWRS1FVklMIn0")
    page.wait_for_url(url)
    heading(page, CHOICE)


def test_every_page_carries_its_headers(site: Site) -> None:
    url = site.initiate(site.business())
    addresses = {url: 200, f"{site.base_url}/checkout/nonsense": 400, url[:-6] + "ZZZZZZ": 404}
    wanted = {
        "content-type": ["text/html; charset=utf-8"],
        "cache-control": ["no-store"],
        "x-content-type-options": ["nosniff"],
        "referrer-policy": ["no-referrer"],
    }
    for address, path in product(addresses, ("", "/launch")):
        answer, status = httpx.get(address + path), addresses[address]
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == status
        assert {name: answer.headers.get_list(name) for name in wanted} == wanted
        assert all(words in policy for words in ("default-src 'none'", "frame-ancestors 'none'"))
        assert not any(words in policy for words in ("unsafe", "*"))
        assert "payaza" not in policy or (path, status) == ("/launch", 200)


def test_a_link_that_was_cut_off_or_got_a_slash_says_so_to_the_payer(site: Site) -> None:
    url = site.initiate(site.business())
    for link in (f"{site.base_url}/checkout", f"{site.base_url}/checkout/", url[:-6], f"{url}/"):
        answer = httpx.get(link, headers={"Accept": "text/html"})
        assert (answer.status_code, "This payment link is not complete" in answer.text) == (400, True), link


def test_the_page_is_small_enough_for_a_slow_line(site: Site, page: Page) -> None:
    asked: list[Request] = []
    page.on("requestfinished", lambda request: asked.append(request))  # noqa: PLW0108 - playwright marks it
    page.goto(site.initiate(site.business()), wait_until="networkidle")
    sizes = [request.sizes() for request in asked]
    assert len(sizes) <= REQUESTS_MAX
    assert sum(one["responseHeadersSize"] + one["responseBodySize"] for one in sizes) < PAGE_MAX


def test_assets_are_named_by_their_content_and_kept_for_ever(site: Site) -> None:
    place = f"{site.base_url}/checkout/assets"
    for name in ASSETS.files:
        for asked, encoding in (("gzip", "gzip"), ("identity", None)):
            answer = httpx.get(f"{place}/{ASSETS.digest}/{name}", headers={"Accept-Encoding": asked})
            found = answer.status_code, answer.content, answer.headers.get("content-encoding")
            assert found == (200, ASSETS.files[name], encoding)
            assert "immutable" in answer.headers["cache-control"]
        assert httpx.get(f"{place}/0/{name}").headers["cache-control"] == "no-store"
    assert httpx.get(f"{place}/{ASSETS.digest}/pages.py").status_code == 404


@dataclass
class FailingCheckout:
    error: Exception

    async def page(self, reference: str) -> NoReturn:
        raise self.error


@pytest.mark.error_lines("request failed")
def test_a_failing_service_answers_with_a_page_and_no_detail(site: Site) -> None:
    for error, status in ((Unavailable("gone"), 503), (Conflict(), 503), (KeyError("canary"), 500)):
        failing = with_parts(site.services, checkout=FailingCheckout(error))
        with TestClient(create_app(failing)) as client:
            answer = client.get("/checkout/PAY-20250131-7K2M9X")
        assert (answer.status_code, "Retry-After" in answer.headers) == (status, status == 503)
        assert "Nothing has been charged by opening this page." in answer.text
        assert "canary" not in answer.text


def test_guessing_references_on_the_page_counts_against_the_same_limit(database_url: str) -> None:
    with served(database_url, unknown_reference_limit=2) as site:
        one, two, _, four = [httpx.get(f"{site.base_url}/checkout/PAY-20250131-ZZZZZZ") for _ in range(4)]
    assert [answer.status_code for answer in (one, two, four)] == [404, 404, 429]
    assert "Retry-After" in four.headers
    assert "Too many attempts" in four.text
