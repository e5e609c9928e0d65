"""What mutation testing reads and writes is about the code as it is."""

from pathlib import Path

import payagg
from lab.mutants.modules import EXPLAINED, MODULES
from tests.support.machine import ROOT

SOURCE = Path(payagg.__file__).parent


def test_every_module_and_test_is_there() -> None:
    assert [file for file in MODULES if not (SOURCE / file).exists()] == []
    assert [test for tests in MODULES.values() for test in tests if not (ROOT / "tests" / test).exists()] == []


def test_every_line_that_is_explained_is_in_its_module() -> None:
    lines = {file: {line.strip() for line in (SOURCE / file).read_text().splitlines()} for file, _ in EXPLAINED}
    assert [(file, line) for file, line in EXPLAINED if line not in lines[file]] == []
