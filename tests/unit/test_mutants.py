"""What mutation testing reads and writes is about the code as it is."""

import re
from pathlib import Path

import payagg
from tests.mutants.explained import EXPLAINED
from tests.mutants.modules import MODULES

SOURCE, ROOT = Path(payagg.__file__).parent, Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "mutants.md"
KILLED = 0.9


def test_every_module_and_test_is_there() -> None:
    assert [file for file in MODULES if not (SOURCE / file).exists()] == []
    assert [test for tests in MODULES.values() for test in tests if not (ROOT / "tests" / test).exists()] == []


def test_every_line_that_is_explained_is_in_its_module() -> None:
    lines = {file: {line.strip() for line in (SOURCE / file).read_text().splitlines()} for file, _ in EXPLAINED}
    assert [(file, line) for file, line in EXPLAINED if line not in lines[file]] == []


def test_the_document_tells_of_every_module_and_of_enough_killed() -> None:
    told = re.findall(r"^## `(.+)`: ([0-9]+) of ([0-9]+)$", DOCUMENT.read_text(), re.MULTILINE)
    assert [file for file, _, _ in told] == list(MODULES)
    assert sum(int(killed) for _, killed, _ in told) >= KILLED * sum(int(tried) for _, _, tried in told)
    assert "not explained" not in DOCUMENT.read_text()
