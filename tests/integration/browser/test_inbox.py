"""The inbox page of `dev`, in a real browser under its own content policy."""

import json
from pathlib import Path

import httpx
import pytest

from tests.integration.process.test_dev import dev, first_line
from tests.support.browser import launched, opened
from tests.support.ports import free_port

pytestmark = pytest.mark.browser


def test_a_delivery_appears_verified_and_can_be_delivered_again(tmp_path: Path) -> None:
    with launched() as browser, dev(tmp_path / "state", free_port(), "--json") as process:
        demo = json.loads(first_line(process.stdout))
        reference = demo["checkoutUrl"].rpartition("/")[2]
        with opened(browser) as page:
            page.goto(demo["webhookInboxUrl"])
            page.get_by_text("Waiting for the first delivery").wait_for()
            httpx.post(
                f"{demo['baseUrl']}/payments/{reference}/simulate",
                headers={"Authorization": f"Bearer {demo['sandboxSecretKey']}"},
                json={"outcome": "FAILED"},
                trust_env=False,
            )
            delivery = page.locator("article").first
            delivery.get_by_text("Signature verified").wait_for()
            assert delivery.get_by_text("payment.failed", exact=True).is_visible()
            assert reference in delivery.locator(".body").inner_text()
            assert "x-service-signature" in delivery.locator(".headers").inner_text()
            delivery.get_by_role("button", name="Redeliver").click()
            page.get_by_text("It is on its way again.").wait_for()
            page.locator("article").nth(1).wait_for()
