"""The merchants' console in a real browser: from a key to a paid webhook, and how its pages read."""

import re
from contextlib import closing

import pytest
from payagg_testing.conformance.inbox import Inbox
from playwright.sync_api import Browser, expect
from standardwebhooks.webhooks import Webhook

from tests.integration.browser.console.test_console_admin import go, sign_in
from tests.support.browser import DESK, SMALL_PHONE, opened, press, shown
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}


@pytest.fixture
def shop(site: Site) -> Site:
    """A site with the business of `ada`."""
    site.business("ada", name="Ada's Shop")
    return site


def test_from_a_key_to_a_paid_webhook_without_leaving_the_browser(chromium: Browser, shop: Site) -> None:
    with closing(Inbox.serve()) as inbox, opened(chromium, viewport=DESK, **CLIPBOARD) as page:
        sign_in(page, shop, "ada", "/console")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

        go(page, "Keys")
        press(page, "Create a key", {"Name": "Shop server"})
        secret = page.locator("#secret").inner_text()
        assert re.fullmatch("ssk_sand_[0-9a-f]{48}", secret)
        press(page, "Copy")
        shown(page, "Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == secret
        page.reload()
        expect(page.get_by_role("row", name=re.compile("Shop server"))).to_contain_text(secret[-4:])
        assert secret not in page.content()

        go(page, "Webhooks")
        press(page, "Create an endpoint", {"Address": f"{inbox.url}/hooks"})
        signing_secret = page.locator("#secret").inner_text()
        press(page, "Send a test event")
        shown(page, "The test event was accepted")

        go(page, "Test payment")
        press(page, "Make a test payment", {"Amount in naira": "2500.50"})
        expect(page.locator(".status")).to_contain_text("initiated")
        reference = page.get_by_role("heading", level=1).inner_text()

        with page.context.expect_page() as opening:
            page.get_by_role("link", name="Open the checkout page").click(modifiers=["ControlOrMeta"])
        payer = opening.value
        payer.locator('[data-number="4242424242424242"]').click()
        press(payer, "Pay ₦2,500.50")
        expect(payer.get_by_text("Payment successful").first).to_be_visible()
        payer.close()
        shop.do(shop.services.dispatcher.run_once())

        # The story renews itself: nobody touches the page.
        expect(page.locator(".status")).to_contain_text("success")
        expect(page.get_by_role("table", name="Deliveries").get_by_text("delivered")).to_have_count(2)
        expect(page.get_by_role("link", name="Open the checkout page")).to_have_count(0)

        # Two deliveries may overtake each other; their numbers tell the order.
        webhook, received = Webhook(signing_secret), inbox.deliveries_at("/hooks")
        bodies = [webhook.verify(one.body, dict(one.headers)) for one in received]
        bodies.sort(key=lambda body: body["sequence"])
        assert [body["type"] for body in bodies] == ["webhook.test", "payment.pending", "payment.success"]
        assert (bodies[-1]["data"]["reference"], bodies[-1]["data"]["amount"]) == (reference, 250_050)

        go(page, "Webhooks")
        page.get_by_role("link", name=inbox.url).click()
        press(page, f"Redeliver payment.success of {reference}")
        shown(page, "The delivery is on its way again.")
        shop.do(shop.services.dispatcher.run_once())
        expect(page.get_by_role("row", name=re.compile("payment.success"))).to_contain_text("2")
        press(page, "Deactivate")
        shown(page, "nothing is sent to it any more")

        go(page, "Keys")
        row = page.get_by_role("row", name=re.compile("Shop server"))
        row.get_by_text("Revoke", exact=False).first.click()
        press(row, "Revoke for ever")
        shown(page, "The key is revoked.")
        press(page, "Sign out")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_merchant_signs_in_with_a_token_and_sets_up_the_checkout(chromium: Browser, shop: Site) -> None:
    shop.configure("provider_a", {"sandboxSecretKey": "sk_test_" + "a" * 40}, name="Paystack")
    keys = {"sandboxPublicKey": "PZ78-PKTEST-1", "sandboxSigningSecret": "s"}
    shop.configure("provider_b", keys, name="Payaza", display_order=5)
    with opened(chromium, viewport=SMALL_PHONE) as page:
        page.goto(shop.base_url)
        press(page, "Sign in", {"Token": "rubbish"})
        expect(page.get_by_role("alert")).to_contain_text("not valid")
        sign_in(page, shop, "ada", "/console")
        go(page, "Checkout")
        card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Payaza"))
        press(card, "Up")
        expect(page.get_by_role("heading", level=2).nth(1)).to_have_text("Payaza")
        card.get_by_label("Chosen first").check()
        press(card, "Save", {"Name for your payers": "Bank & card"})
        preview = page.get_by_role("region", name="Preview of the options")
        expect(preview.get_by_role("radio", name="Bank & card")).to_be_checked()
        renamed = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Bank & card"))
        renamed.get_by_label("On: payers may choose it").uncheck()
        press(renamed, "Save")
        expect(preview).not_to_contain_text("Bank & card")
        page.get_by_role("navigation", name="Environment").get_by_role("link", name="LIVE").click()
        shown(page, "Real payments and real money.")
        expect(page.get_by_role("heading", level=1)).to_have_text("Checkout settings")
