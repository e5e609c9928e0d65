"""Each broken service of the zoo is caught by the harness alone, and services without a defect are not accused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from payagg.adapters.memory import MemoryStore
from payagg.entrypoints.dev.conformance import InProcess
from payagg.testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg.testing.conformance.run import MACHINES, Effort, run_machine
from tests.support.rounds import scaled
from tests.zoo.by_hand import Handmade
from tests.zoo.receivers import BROKEN_RECEIVERS
from tests.zoo.specimens import Accounts, Specimen, hand_target, hunted, specimens

DOCUMENT = Path(__file__).parents[2] / "docs" / "zoo.md"
BRIEF = Effort(histories=scaled(8), actions=20)


@pytest.fixture(scope="module")
def accounts() -> Iterator[Accounts]:
    played = ProviderAccount(), ProviderBAccount()
    yield played
    for account in played:
        account.close()


@pytest.mark.parametrize("specimen", specimens(), ids=lambda specimen: specimen.name)
def test_a_broken_service_is_caught(specimen: Specimen, accounts: Accounts) -> None:
    assert hunted(specimen, accounts).violation is not None, specimen.defect


@pytest.mark.parametrize("name", MACHINES)
def test_a_service_that_somebody_else_wrote_well_passes(name: str, accounts: Accounts) -> None:
    with hand_target(Handmade) as target:
        target.provider, target.provider_b = accounts
        verdict = run_machine(name, target, BRIEF)
    assert (verdict.violation, verdict.skipped) == (None, None)
    assert verdict.requests > 50


@pytest.mark.parametrize("name", MACHINES)
def test_the_product_on_the_in_memory_store_passes(name: str, accounts: Accounts) -> None:
    world = InProcess(MemoryStore())
    target = world.target(provider=accounts[0], provider_b=accounts[1])
    verdict = run_machine(name, target, BRIEF)
    target.service.close()
    world.close()
    assert (verdict.violation, verdict.skipped) == (None, None)
    assert verdict.requests > 50


def test_the_document_has_a_row_for_each() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    defects = re.findall(r"^\| (.+?) \| (?:by hand|product|rules) \|", text, re.MULTILINE)
    assert defects == [" ".join(one.defect.split()) for one in specimens()]
    assert "GOT AWAY" not in text
    assert all(f"| {one.__doc__} |" in text for one in BROKEN_RECEIVERS)
    assert {one.machine for one in specimens()} == set(MACHINES)
