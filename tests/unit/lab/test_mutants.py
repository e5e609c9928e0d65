"""What mutation testing reads and writes is about the code as it is."""

from pathlib import Path

from payagg_testing.conformance.run import MACHINES

import payagg
from lab.mutants import by_harness
from lab.mutants.modules import EXPLAINED, MODULES
from lab.mutants.reach import unreached
from lab.mutants.run import changes
from lab.mutants.unseen import UNSEEN
from tests.support.machine import ROOT

SOURCE = Path(payagg.__file__).parent


def test_every_module_and_test_is_there() -> None:
    assert [file for file in MODULES if not (SOURCE / file).exists()] == []
    assert [test for tests in MODULES.values() for test in tests if not (ROOT / "tests" / test).exists()] == []


def test_every_line_that_is_explained_is_in_its_module() -> None:
    lines = {file: {line.strip() for line in (SOURCE / file).read_text().splitlines()} for file, _ in EXPLAINED}
    assert [(file, line) for file, line in EXPLAINED if line not in lines[file]] == []


def test_every_mutant_that_no_request_can_tell_is_still_made() -> None:
    beside = unreached(SOURCE)
    for file, mutants in UNSEEN.items():
        made = changes((SOURCE / file).read_text(), {before for before, _ in mutants}, beside[file])
        assert mutants.keys() - made == set(), file


def test_the_harness_hunts_in_modules_and_by_machines_that_exist() -> None:
    assert [file for file in by_harness.JUDGED if not (SOURCE / file).exists()] == []
    assert set(by_harness.MACHINES) < MACHINES.keys()
