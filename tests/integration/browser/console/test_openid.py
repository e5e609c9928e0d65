"""Signing in to the console at a certified OpenID Connect provider, in a real browser: another site, as issuers are."""

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from payagg.extensions.console.settings import ConsoleSettings
from tests.support.browser import SMALL_PHONE, judge_on_every_screen, opened, press
from tests.support.checkout_site import Site, served
from tests.support.machine import NODE, node_package, program

pytestmark = pytest.mark.browser
CLIENT = ("console", "a secret of the tests, 32 bytes and more")
PATIENCE = 20  # seconds; a busy machine must not fail a test


@contextmanager
def an_issuer() -> Iterator[tuple[str, Callable[[str], None]]]:
    """Its address, and what makes it know the client's."""
    node_package("oidc-provider")
    command = [program("node", "nodejs"), str(NODE / "openid_issuer.mjs"), *CLIENT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said, told = process.stdout, process.stdin

        def admit(origin: str) -> None:
            told.write(f"{origin}\n")
            told.flush()
            assert "ready\n" in iter(said.readline, "")

        yield said.readline().strip(), admit
        told.close()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def site_and_database(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[tuple[Site, str]]:
    roles = ("groups", (("pay-admins", "ADMIN"),))
    with new_database() as url, an_issuer() as (issuer, admit):
        client_id, secret = CLIENT
        own = (ConsoleSettings(issuer, client_id, secret, roles),)
        with served(url, dev=False, own=own) as site:
            admit(site.base_url)
            yield site, url


def sign_out(page: Page) -> None:
    press(page, "Sign out")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.rule("access.38")
def test_who_signs_in_at_the_issuer_lands_in_the_console_until_they_sign_out(chromium: Browser, site: Site) -> None:
    site.business("ada", name="Ada's Shop")
    with opened(chromium, viewport=SMALL_PHONE) as page:
        page.route(re.compile("^https:"), lambda route: route.abort())  # the issuer's page wants a font of the internet
        page.goto(f"{site.base_url}/console/admin")
        expect(page.get_by_label("Token")).to_have_count(0)
        judge_on_every_screen(page)
        page.get_by_role("link", name="Sign in", exact=True).click()
        page.get_by_placeholder("Enter any login").fill("ada")
        page.get_by_placeholder("and password").fill("secret")
        press(page, "Sign-in")
        press(page, "Continue")
        expect(page.get_by_role("heading", level=1)).to_have_text("Gateways")
        sign_out(page)
        page.goto(f"{site.base_url}/console/admin/gateways")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")

        # The issuer still knows them and asks nothing: redirects alone lead from our page to our page.
        page.goto(f"{site.base_url}/console")
        page.get_by_role("link", name="Sign in", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        sign_out(page)
