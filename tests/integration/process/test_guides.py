"""Every listing of docs/guide/, run as its reader would, page by page, against `payagg dev`."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from payagg.entrypoints.http.docs.description import describe
from payagg.entrypoints.http.docs.reference import samples
from payagg.entrypoints.settings import Settings
from tests.integration.process.listings import Listing, ReadersShell, is_refusal, listings, shape
from tests.integration.process.test_dev import dev, first_line
from tests.support.http_world import bearer
from tests.support.machine import ROOT
from tests.support.ports import free_port

pytestmark = pytest.mark.release
GUIDES = ROOT / "docs" / "guide"
TOLD = {
    "BASE_URL": "baseUrl",
    "SECRET_KEY": "sandboxSecretKey",
    "MERCHANT_TOKEN": "merchantToken",
    "ADMIN_TOKEN": "adminToken",
    "BUSINESS_ID": "businessId",
}
# Calls that need no id of something that must be made first.
SAMPLED = {"getPaymentContext", "initiatePayment", "listPayments", "listEventsOfKey", "listBusinessGateways"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a running `payagg dev` tells about itself, and in `folder` where it was started."""
    folder = tmp_path_factory.mktemp("reader")
    with dev(folder / ".payagg", free_port(), "--json") as process:
        yield {**json.loads(first_line(process.stdout)), "folder": str(folder)}


@pytest.fixture
def shell(demo: dict[str, str], tmp_path: Path) -> ReadersShell:
    """After the quick start's first steps, with a payment of its own."""
    (tmp_path / ".payagg").symlink_to(Path(demo["folder"]) / ".payagg")
    key = bearer(demo["sandboxSecretKey"])
    made = httpx.post(f"{demo['baseUrl']}/payments/initiate", json={"amount": 150000}, headers=key, trust_env=False)
    environment = {name: demo[told] for name, told in TOLD.items()}
    return ReadersShell(tmp_path, environment | {"REFERENCE": made.json()["data"]["reference"]})


def run(shell: ReadersShell, listing: Listing) -> None:
    if listing.language == "json":
        assert shape(json.loads(listing.code)) == shape(json.loads(shell.printed.strip().splitlines()[-1]))
        return
    shell.run(listing)
    assert is_refusal(shell.printed) is (listing.use == "refused"), shell.printed


@pytest.mark.parametrize("guide", sorted(GUIDES.glob("*.md")), ids=lambda path: path.stem)
def test_every_listing_of_a_guide_works_as_it_stands(guide: Path, shell: ReadersShell) -> None:
    for listing in listings(guide):
        if listing.use != "verify":  # a function, which test_webhook_recipes.py calls
            run(shell, listing)


def test_every_word_after_a_language_is_known() -> None:
    used = {listing.use for guide in GUIDES.glob("*.md") for listing in listings(guide)}
    assert used == {"", "refused", "csv", "verify"}


@pytest.mark.parametrize("language", ["bash", "python", "js", "php"])
def test_the_references_calls_work_in_every_language(demo: dict[str, str], shell: ReadersShell, language: str) -> None:
    described = describe(Settings(base_url=demo["baseUrl"].removesuffix("/api/v1")))
    operations = [(path, method, item[method]) for path, item in described["paths"].items() for method in item]
    chosen = [one for one in operations if one[2]["operationId"] in SAMPLED]
    assert len(chosen) == len(SAMPLED)
    for path, method, operation in chosen:
        code = samples(path.replace("{businessId}", demo["businessId"]), method, operation, demo["baseUrl"])[language]
        shell.run(Listing(language, "", code))
        assert '"success":true' in shell.printed, shell.printed
