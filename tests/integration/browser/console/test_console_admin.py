"""The administrators' console in a real browser: a gateway's life, KYC, anomalies, and how its pages read."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from payagg_testing.builders import REFERENCE, a_payment, an_attempt, an_id
from payagg_testing.provider_faults import Fault
from playwright.sync_api import Browser, Page, expect

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.payment import Trigger
from tests.support.browser import DESK, SMALL_PHONE, judge_on_every_screen, opened, press, shown
from tests.support.checkout_site import Site
from tests.support.images import an_image
from tests.support.provider_rigs import credentials_a

pytestmark = pytest.mark.browser
SECRET, ABSENT_KEY = "sk_live_" + "s" * 40, "Secret key (none on file)"
LONG_NAME = "a.very.long.name.of.an.administrator@example.com"
DRAIN = timedelta(seconds=8)  # long enough to see it on a busy machine, short enough to wait for its end
SITE = {"drain_window": DRAIN, "with_fakes": True}
CLAIMS: dict[str, dict[str, Any]] = {
    "/console/admin": {"type": "admin", "role": "ADMIN"},
    "/console": {"type": "merchant", "emailVerified": True},
}


def sign_in(page: Page, site: Site, subject: str = "admin-1", home: str = "/console/admin") -> None:
    claims = {"sub": subject, **CLAIMS[home]}
    token = site.services.tokens.issue(claims, 3600, int(site.services.clock.now().timestamp()))
    page.goto(f"{site.base_url}{home}/sign-in")
    press(page, "Sign in", {"Token": token})
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert token not in page.url
    assert page.evaluate("document.cookie") == ""


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Console").get_by_role("link", name=name, exact=True).click()


def test_a_gateway_from_its_credentials_to_its_end(chromium: Browser, site: Site, tmp_path: Path) -> None:
    business, store = site.business(name="Ada's Shop"), site.services.store
    site.do(store.add_payment(a_payment()))
    site.within(lambda tx: tx.attempts.add(an_attempt(next_ask_at=site.services.clock.now())))
    with opened(chromium, viewport=DESK) as page:
        sign_in(page, site)
        page.get_by_role("link", name="Paystack").click()
        shown(page, "No credentials are on file.")
        sandbox, live = (page.get_by_role("form", name=f"{one} credentials") for one in ("SANDBOX", "LIVE"))
        press(sandbox, "Save", {ABSENT_KEY: SECRET})
        expect(page.get_by_role("alert")).to_contain_text("not of the SANDBOX environment")
        expect(sandbox.get_by_label(ABSENT_KEY)).to_have_attribute("aria-invalid", "true")
        assert SECRET not in page.content()
        press(live, "Save", {ABSENT_KEY: SECRET})
        shown(page, "They are never shown again.")
        assert SECRET not in page.content()
        live.get_by_role("switch", name="Payers may use it").uncheck()
        press(live, "Save", {"Webhook secret (none on file)": "whsec_live"})
        expect(live.get_by_role("switch")).not_to_be_checked()
        expect(live.get_by_label("Secret key (on file)")).to_have_value("")
        expect(sandbox.get_by_label(ABSENT_KEY)).to_be_visible()
        live.get_by_role("switch").check()
        live.get_by_label("Remove the webhook secret").check()
        press(live, "Save")
        expect(live.get_by_role("switch")).to_be_checked()
        for label in ("Webhook secret (none on file)", "Secret key (on file)"):
            expect(live.get_by_label(label)).to_be_visible()

        logo = tmp_path / "logo.png"
        refusal = "Logo must be a PNG or JPEG image."
        for content, role, told in ((an_image(), "status", "The logo is stored."), (b"no picture", "alert", refusal)):
            logo.write_bytes(content)
            page.get_by_label("PNG or JPEG").set_input_files(logo)
            press(page, "Store the logo")
            expect(page.locator(f"[role={role}]").first).to_contain_text(told)
            image = page.get_by_role("img", name="The logo of Paystack")
            assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 16
        expect(page.get_by_role("table", name="Active businesses")).to_contain_text(business.name)

        press(page, "Enable", exact=True)
        shown(page, "1 payment under way")
        press(page, "Disable: drain, then off")
        expect(page.get_by_text(re.compile("Disabled in 0 min 0[0-9] s"))).to_be_visible()
        # The end of the drain is seen without a reload.
        expect(page.locator(".status")).to_contain_text("disabled")
        page.reload()
        page.get_by_text("Delete", exact=True).click()
        press(page, "Delete for ever")
        shown(page, "The gateway is deleted.")
        expect(page.get_by_role("link", name="Paystack")).to_have_count(0)
        go(page, "Audit")
        page.get_by_label("Action").select_option("gateway.delete")
        press(page, "Filter")
        expect(page.get_by_role("row").nth(1)).to_contain_text("administrator admin-1")


def test_credentials_are_tried_at_the_provider(chromium: Browser, site: Site) -> None:
    site.configure("provider_a", credentials_a(site.fakes), name="Paystack")
    with opened(chromium, viewport=SMALL_PHONE) as page:
        sign_in(page, site)
        page.get_by_role("link", name="Paystack").click()
        press(page, "Try it with the LIVE credentials")
        expect(page.get_by_role("status").first).to_contain_text("Paystack takes the LIVE credentials")
        site.fakes.paystack.book.faults.append(Fault.REFUSED_KEY)
        press(page, "Try it with the SANDBOX credentials")
        expect(page.get_by_role("status").first).to_contain_text("refuses the SANDBOX credentials")
        judge_on_every_screen(page)


def test_a_business_from_creation_to_approval_and_an_anomaly_to_its_end(chromium: Browser, site: Site) -> None:
    now = site.services.clock.now()
    late = Anomaly(an_id("anm", 1), REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {"amounts": [5000]}, now)
    site.business()
    site.do(site.services.store.add_payment(a_payment()))
    site.within(lambda tx: tx.anomalies.add(late))
    with opened(chromium, viewport=SMALL_PHONE) as page:
        sign_in(page, site)
        go(page, "Businesses")
        page.get_by_role("textbox", name="Name").nth(1).fill("Ada's Shop")
        press(page, "Create a business", {"Subject of its first OWNER": "ada"})
        for target in ("pending", "under review", "approved"):
            press(page, f"Move to {target}")
            expect(page.locator(".facts")).to_contain_text(target)
        press(page, "Remove ada")
        expect(page.get_by_role("alert")).to_contain_text("at least one OWNER")
        page.get_by_label("Role").select_option("OWNER")
        press(page, "Add or change", {"Subject": "obi"})
        press(page, "Remove ada")
        shown(page, "The member is removed.")

        go(page, "Health")
        page.get_by_role("link", name="late success").click()
        page.get_by_role("link", name=REFERENCE).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(REFERENCE)
        go(page, "Anomalies")
        page.get_by_label("Severity").select_option("MONEY_GONE")
        press(page, "Filter")
        shown(page, "Nothing waits.")
        page.get_by_label("Severity").select_option("MONEY_TO_GIVE_BACK")
        press(page, "Filter")
        page.get_by_text("Assign it").click()
        press(page, "Assign", {"Who works on it; empty for nobody": "ben"}, exact=True)
        expect(page.locator(".facts")).to_contain_text("ben")
        page.get_by_text("Add a note").click()
        note = "Asked the provider.\nNo answer yet."
        press(page, "Add", {"What was found out": note}, exact=True)
        expect(page.locator(".notes .written")).to_have_text(note, use_inner_text=True)
        press(page, "I look at it")
        expect(page.get_by_text("admin:admin-1", exact=True)).to_be_visible()
        page.get_by_text("Close it").click()
        press(page, "Close", {"What was done": "Refunded at the provider."}, exact=True)
        shown(page, "admin-1: Refunded at the provider.")


async def a_stuck_payment(site: Site) -> None:
    """PENDING past its window, with an anomaly, a dispute that is due, and notes."""
    store, now = site.services.store, site.services.clock.now()
    payment, _ = await store.add_payment(a_payment(ttl=timedelta(milliseconds=1)))
    silent = Anomaly(an_id("anm", 1), REFERENCE, AnomalyKind.NO_EVIDENCE, "reconciler", {"expected": 150000}, now)
    details = {"disputeId": "358", "state": "opened", "dueAt": "2026-12-01T10:00:00.000Z", "amounts": [150000]}
    dispute = Anomaly(an_id("anm", 2), REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, now - DRAIN)
    text = "Asked the provider. " * 12 + "https://provider.example/cases/" + "4711" * 30
    async with store.begin() as tx:
        await site.services.settlement.move(tx, payment, Trigger.PROCESS, actor="payer")
        await tx.anomalies.add(silent)
        await tx.anomalies.add(dispute.assign(LONG_NAME).note(text, "admin:ada", now))


def test_a_payment_is_ended_by_two_administrators(chromium: Browser, site: Site) -> None:
    site.business()
    site.do(a_stuck_payment(site))
    with opened(chromium, viewport=SMALL_PHONE) as page:
        sign_in(page, site)
        page.goto(f"{site.base_url}/console/admin/payments/{REFERENCE}")
        page.get_by_text("Ask to end it", exact=True).click()
        press(page, "Ask for failed", {"Reason": "The account is closed.", "Evidence": "Case 4711."})
        shown(page, "Nothing has changed yet")
        press(page, "Confirm: the payment has failed")
        expect(page.get_by_role("alert")).to_contain_text("Another administrator")
        expect(page.locator(".status")).to_contain_text("pending")
    with opened(chromium, viewport=SMALL_PHONE) as page:
        sign_in(page, site, "admin-2")
        page.goto(f"{site.base_url}/console/admin/payments/{REFERENCE}")
        press(page, "Confirm: the payment has failed")
        expect(page.locator(".status")).to_contain_text("failed")
        shown(page, "administrator admin-1, confirmed by administrator admin-2")
        expect(page.get_by_role("button", name="Confirm: the payment has failed")).to_have_count(0)
