"""The table of defects fits the product, detectors notice what is broken, and the harness passes what is not."""

import ast
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest
from payagg_testing.conformance.inbox import Inbox
from payagg_testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg_testing.conformance.run import MACHINES, Effort, run_machine
from payagg_testing.conformance.service import Service
from payagg_testing.conformance.target import ConformanceTarget, MerchantAccess

import payagg
from lab.defects.detect import HUNT, product
from lab.defects.run import main
from lab.defects.services.broken import SharesKeysAcrossEnvironments, TellsRemovedEndpoints
from lab.defects.services.payments import Handmade
from lab.defects.table import DEFECTS, Defect, EditDoesNotFit
from tests.support.product_copy import ROOT
from tests.support.rounds import scaled

SOURCE = Path(payagg.__file__).parent
BRIEF = Effort(histories=scaled(8), actions=20)


@contextmanager
def by_hand(made: type[Handmade] = Handmade) -> Iterator[ConformanceTarget]:
    app, accounts = made(Inbox("https://inbox.example")), (ProviderAccount(), ProviderBAccount())
    service = Service("http://hand.example/api/v1", transport=httpx.ASGITransport(app), wait=app.wait, work=app.work)
    one, two, unapproved, suspended = (MerchantAccess(*pair) for pair in app.businesses.items())
    target = ConformanceTarget(service, (one, two), app.admin, unapproved, suspended, inbox=app.inbox)
    target.provider, target.provider_b = accounts
    yield target
    service.close()
    for account in accounts:
        account.close()


def named_in(file: Path) -> set[str]:
    """The tests that pytest collects from `file`, at any depth of classes."""
    nodes = ast.walk(ast.parse(file.read_text())) if file.exists() else ()
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_edit_fits_the_product() -> None:
    for defect in DEFECTS:
        for file, text in defect.planted(SOURCE).items():
            assert not file.endswith(".py") or ast.parse(text), defect.name


def test_an_edit_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(EditDoesNotFit):
        Defect("none", {"domain/payment.py": ["no such text", ""]}, {}).planted(SOURCE)


def test_every_defect_names_a_detector_and_tests_that_exist() -> None:
    inherited = set().union(*map(named_in, (ROOT / "tests" / "contracts").glob("*.py")))

    def exists(test: str) -> bool:
        file, *_, name = test.split("::")
        return name in named_in(ROOT / "tests" / file) | inherited

    assert [defect.name for defect in DEFECTS if not defect.detectors] == []
    assert [test for defect in DEFECTS for test in defect.detectors.get("test", ()) if not exists(test)] == []
    assert {machine for defect in DEFECTS for machine in defect.detectors.get("harness", ())} == set(MACHINES)


@pytest.mark.parametrize(
    ("detector", "name"),
    [("simulation", "a timeout counts as no charge"), ("harness", "a replay is answered with 201")],
)
def test_a_broken_product_is_noticed(detector: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", name, "--detector", detector]) == 0, capsys.readouterr().out
    assert "defects: 1 of 1 hold" in capsys.readouterr().out


@pytest.mark.parametrize("opened", [product, by_hand], ids=lambda opened: opened.__name__)
def test_the_harness_passes_a_good_service(opened: Callable[[], AbstractContextManager[ConformanceTarget]]) -> None:
    with opened() as target:
        for machine in MACHINES:
            verdict = run_machine(machine, target, BRIEF)
            assert (verdict.violation, verdict.skipped) == (None, None), machine
            assert verdict.requests > 50, machine


@pytest.mark.parametrize(
    ("broken", "machine"), [(SharesKeysAcrossEnvironments, "idempotency"), (TellsRemovedEndpoints, "webhooks")]
)
def test_the_harness_notices_what_no_edit_can_show(broken: type[Handmade], machine: str) -> None:
    """The product makes no LIVE payment without a gateway, and ends what is due to an endpoint that is off."""
    with by_hand(broken) as target:
        assert run_machine(machine, target, HUNT).violation is not None
