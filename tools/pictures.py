"""`make pictures`: takes docs/pictures/*.png of a fresh `payagg dev` with its demo data."""

import json
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx
from PIL import Image
from playwright.sync_api import Page

from tests.integration.process.test_dev import dev, first_line
from tests.support.browser import launched, opened
from tests.support.ports import free_port

PICTURES = Path("docs/pictures")
PHONE = {"width": 390, "height": 700}
DESK = {"width": 1100, "height": 720}


def pay(demo: dict[str, str]) -> None:
    headers = {"Authorization": f"Bearer {demo['sandboxSecretKey']}"}
    with httpx.Client(base_url=demo["baseUrl"], headers=headers, trust_env=False) as api:
        for amount, outcome in ((475_000, "SUCCESS"), (120_000, "FAILED"), (2_350_000, "SUCCESS"), (89_900, "SUCCESS")):
            body = {"amount": amount, "customerEmail": "ada@example.com"}
            made = api.post("/payments/initiate", json=body).json()["data"]
            api.post(f"/payments/{made['reference']}/simulate", json={"outcome": outcome}).raise_for_status()


def take(page: Page, name: str) -> None:
    """With 64 colours, which is a third of the size."""
    Image.open(BytesIO(page.screenshot())).quantize(64).save(PICTURES / name, optimize=True)


def main() -> None:
    with TemporaryDirectory() as folder, dev(Path(folder, "state"), free_port(), "--json") as process:
        demo = json.loads(first_line(process.stdout))
        pay(demo)
        with launched() as browser:
            with opened(browser, viewport=PHONE, color_scheme="light") as page:
                page.goto(demo["checkoutUrl"])
                page.get_by_role("button").last.wait_for()
                take(page, "checkout.png")
            with opened(browser, viewport=DESK, color_scheme="light") as page:
                page.goto(demo["consoleUrl"])
                page.get_by_role("link", name="Payments", exact=True).click()
                page.get_by_role("heading", name="Payments").wait_for()
                take(page, "console.png")


if __name__ == "__main__":
    main()
