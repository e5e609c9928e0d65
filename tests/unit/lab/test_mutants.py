"""What mutation testing reads and writes is about the code as it is."""

from pathlib import Path

from payagg_testing.conformance.run import MACHINES

import payagg
from lab.mutants import by_harness
from lab.mutants.modules import EXPLAINED, MODULES, UNSEEN
from lab.mutants.reach import unreached
from tests.support.machine import ROOT

SOURCE = Path(payagg.__file__).parent


def test_every_module_and_test_is_there() -> None:
    assert [file for file in MODULES if not (SOURCE / file).exists()] == []
    assert [test for tests in MODULES.values() for test in tests if not (ROOT / "tests" / test).exists()] == []


def test_every_line_that_is_explained_is_in_its_module() -> None:
    explained = [*EXPLAINED, *((file, line) for file, lines in UNSEEN.items() for line in lines)]
    lines = {file: {line.strip() for line in (SOURCE / file).read_text().splitlines()} for file, _ in explained}
    assert [(file, line) for file, line in explained if line not in lines[file]] == []


def test_a_request_reaches_the_receipt_of_an_event_and_not_the_worker_that_tries_it_again() -> None:
    file = "application/payments/provider_events.py"
    lines = (SOURCE / file).read_text().splitlines()
    beside = "".join(line for begin, end in unreached(SOURCE)[file] for line in lines[begin[0] - 1 : end[0] - 1])
    assert "async def retry_due" in beside
    assert not any(f"async def {name}(" in beside for name in ("receive", "_keep", "_handle_now"))


def test_the_harness_hunts_in_modules_and_by_machines_that_exist() -> None:
    assert [file for file in by_harness.JUDGED if not (SOURCE / file).exists()] == []
    assert set(by_harness.MACHINES) < MACHINES.keys()
