"""The documentation in a real browser under its own content policy: narrow, light and dark, with its search."""

import httpx
import pytest
from playwright.sync_api import Browser, Page

from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.docs.site import DocsSite
from tests.support.browser import SMALL_PHONE, judge_on_every_screen, opened
from tests.support.checkout_site import Site
from tools.openapi.document import document

pytestmark = pytest.mark.browser
PAGES = [page.slug for page in DocsSite(document(api_routes())).pages]
KINDS = ("", "webhooks", "states", "reference-businesses")  # a page of each kind of content


@pytest.fixture
def origin(site_and_database: tuple[Site, str]) -> str:
    base_url = site_and_database[0].base_url
    httpx.get(f"{base_url}/docs", timeout=60, trust_env=False)  # the first reader waits until all pages are made
    return base_url


@pytest.mark.release
def test_no_page_is_wider_than_a_small_phone(chromium: Browser, origin: str) -> None:
    with opened(chromium, viewport=SMALL_PHONE) as page:
        for slug in PAGES:
            page.goto(f"{origin}/docs/{slug}".rstrip("/"))
            page.locator("h1").wait_for()
            assert page.evaluate("document.scrollingElement.scrollWidth") <= SMALL_PHONE["width"], slug


@pytest.mark.release
def test_axe_finds_nothing(chromium: Browser, origin: str) -> None:
    with opened(chromium, bypass_csp=True) as page:
        for slug in KINDS:
            page.goto(f"{origin}/docs/{slug}".rstrip("/"))
            judge_on_every_screen(page, may_scroll=True)


def test_the_search_finds_a_code_a_call_and_nothing(page: Page, origin: str) -> None:
    page.goto(f"{origin}/docs")
    query = page.get_by_label("Search")
    query.fill("DUPLICATE_PAYMENT")
    page.locator("#found a", has_text="Errors").first.wait_for()
    query.fill("simulate sandbox outcome")
    page.locator("#found a", has_text="Simulate the outcome").click()
    page.wait_for_url("**/docs/reference-payments#simulatePayment")
    query.fill("webhok signatre")
    page.locator("#found a").first.wait_for()
    query.fill("zebra crossing")
    page.get_by_text("Nothing found.").wait_for()
