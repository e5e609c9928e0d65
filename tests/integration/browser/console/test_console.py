"""The merchants' console in a real browser: from a key to a paid webhook, and how its pages read."""

import re
from contextlib import closing

import pytest
from payagg_testing.conformance.inbox import Inbox
from playwright.sync_api import Browser, expect
from standardwebhooks.webhooks import Webhook

from payagg.domain.business import Role
from tests.integration.browser.console.test_console_admin import go, sign_in
from tests.support.browser import DESK, SMALL_PHONE, opened
from tests.support.checkout_site import Site

pytestmark = pytest.mark.browser
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}


@pytest.fixture
def shop(site: Site) -> Site:
    """A site with the business of `ada`."""

    async def ada_owns_it() -> None:
        async with site.services.store.begin() as tx:
            await tx.members.add("biz_1", "ada", Role.OWNER)

    site.business(name="Ada's Shop")
    site.do(ada_owns_it())
    return site


def test_from_a_key_to_a_paid_webhook_without_leaving_the_browser(chromium: Browser, shop: Site) -> None:
    with closing(Inbox.serve()) as inbox, opened(chromium, viewport=DESK, **CLIPBOARD) as page:
        sign_in(page, shop, "ada", "/console")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

        go(page, "Keys")
        page.get_by_label("Name").fill("Shop server")
        page.get_by_role("button", name="Create a key").click()
        secret = page.locator("#secret").inner_text()
        assert re.fullmatch("ssk_sand_[0-9a-f]{48}", secret)
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == secret
        page.reload()
        expect(page.get_by_role("row", name=re.compile("Shop server"))).to_contain_text(secret[-4:])
        assert secret not in page.content()

        go(page, "Webhooks")
        page.get_by_label("Address").fill(f"{inbox.url}/hooks")
        page.get_by_role("button", name="Create an endpoint").click()
        signing_secret = page.locator("#secret").inner_text()
        page.get_by_role("button", name="Send a test event").click()
        expect(page.get_by_text("The test event was accepted")).to_be_visible()
        endpoint = page.url

        go(page, "Test payment")
        page.get_by_label("Amount in naira").fill("2500.50")
        page.get_by_role("button", name="Make a test payment").click()
        expect(page.locator(".status")).to_contain_text("initiated")
        reference = page.get_by_role("heading", level=1).inner_text()

        with page.context.expect_page() as opening:
            page.get_by_role("link", name="Open the checkout page").click(modifiers=["ControlOrMeta"])
        payer = opening.value
        payer.locator('[data-number="4242424242424242"]').click()
        payer.get_by_role("button", name="Pay ₦2,500.50").click()
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
        assert bodies[-1]["data"]["reference"] == reference
        assert bodies[-1]["data"]["amount"] == 250_050

        page.goto(endpoint)
        page.get_by_role("button", name=f"Redeliver payment.success of {reference}").click()
        expect(page.get_by_text("The delivery is on its way again.")).to_be_visible()
        shop.do(shop.services.dispatcher.run_once())
        expect(page.get_by_role("row", name=re.compile("payment.success"))).to_contain_text("2")
        page.get_by_role("button", name="Deactivate").click()
        expect(page.get_by_text("nothing is sent to it any more")).to_be_visible()

        go(page, "Keys")
        row = page.get_by_role("row", name=re.compile("Shop server"))
        row.get_by_text("Revoke", exact=False).first.click()
        row.get_by_role("button", name="Revoke for ever").click()
        expect(page.get_by_text("The key is revoked.")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_merchant_signs_in_with_a_token_and_sets_up_the_checkout(chromium: Browser, shop: Site) -> None:
    shop.configure("provider_a", {"sandboxSecretKey": "sk_test_" + "a" * 40}, name="Paystack")
    keys = {"sandboxPublicKey": "PZ78-PKTEST-1", "sandboxSigningSecret": "s"}
    shop.configure("provider_b", keys, name="Payaza", display_order=5)
    with opened(chromium, viewport=SMALL_PHONE) as page:
        page.goto(shop.base_url)
        page.get_by_label("Token").fill("rubbish")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("not valid")
        sign_in(page, shop, "ada", "/console")
        go(page, "Checkout")
        card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Payaza"))
        card.get_by_role("button", name="Up").click()
        expect(page.get_by_role("heading", level=2).nth(1)).to_have_text("Payaza")
        card.get_by_label("Name for your payers").fill("Bank & card")
        card.get_by_label("Chosen first").check()
        card.get_by_role("button", name="Save").click()
        preview = page.get_by_role("region", name="Preview of the options")
        expect(preview.get_by_role("radio", name="Bank & card")).to_be_checked()
        renamed = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Bank & card"))
        renamed.get_by_label("On: payers may choose it").uncheck()
        renamed.get_by_role("button", name="Save").click()
        expect(preview).not_to_contain_text("Bank & card")
        page.get_by_role("navigation", name="Environment").get_by_role("link", name="LIVE").click()
        expect(page.get_by_text("Real payments and real money.")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Checkout settings")
