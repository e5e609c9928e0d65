"""The table of defects fits the product, and detectors notice what is broken."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from payagg_testing.conformance.run import MACHINES

from lab.defects.run import DEFECTS, main
from tests.support.machine import ROOT


def named_in(file: Path) -> set[str]:
    """The tests that pytest collects from `file`, at any depth of classes."""
    nodes = ast.walk(ast.parse(file.read_text())) if file.exists() else ()
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_edit_fits_the_product(tmp_path: Path) -> None:
    for number, defect in enumerate(DEFECTS):
        for file, text in defect.planted(ROOT).items():
            (planted := tmp_path / str(number) / file).parent.mkdir(parents=True, exist_ok=True)
            planted.write_text(text)
            nodes = ast.walk(ast.parse(text)) if file.endswith(".py") else ()
            modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
            assert [module for module in modules if find_spec(module) is None] == [], defect.name
    # A name that is nowhere breaks the program, which anything would notice.
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--select=F821", "--output-format=concise"]
    assert subprocess.run([*ruff, tmp_path], check=False, capture_output=True, text=True).stdout == ""


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
    [
        ("simulation", "a timeout counts as no charge"),
        ("harness", "a replay is answered with 201"),
    ],
)
def test_a_broken_product_is_noticed(detector: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", name, "--detector", detector]) == 0, capsys.readouterr().out
    assert "defects: 1 of 1 hold" in capsys.readouterr().out
