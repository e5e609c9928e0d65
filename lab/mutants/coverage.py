"""Which lines and branches of the money's code no test without a database runs, or takes one way alone: its unit tests, the
model's machine over the use cases, and the store's contract in memory."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.mutants.modules import MODULES
from tests.support.machine import ROOT

DRIVERS = ("unit/testing/test_payment_machine.py", "unit/testing/test_store_contract.py")


def measured(modules: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """What coverage.py says of each module, by its path below src/payagg."""
    with a_folder("coverage") as folder:
        places = os.pathsep.join(str(ROOT / name) for name in ("src", "testing", ""))
        environ = os.environ | {"PYTHONPATH": places, "COVERAGE_FILE": f"{folder}/data"}
        coverage = [sys.executable, "-m", "coverage"]
        tests = [
            f"tests/{test}" for test in dict.fromkeys([*DRIVERS, *(test for one in modules for test in MODULES[one])])
        ]
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
        report = f"{folder}/report.json"
        for words in (["run", "--branch", "--source=src/payagg", *pytest], ["json", "--quiet", "-o", report]):
            subprocess.run([*coverage, *words], env=environ, cwd=ROOT, check=True)
        files = json.loads(Path(report).read_text())["files"]
    return {file: files[f"src/payagg/{file}"] for file in modules}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab coverage", description=__doc__)
    parser.add_argument("--only", default="", help="part of a module's name, as checkout")
    only = parser.parse_args(arguments).only
    tally, whole, covered = RunSummary("coverage", arguments), 0, 0
    for file, one in measured([module for module in MODULES if only in module]).items():
        summary = one["summary"]
        whole += summary["num_statements"] + summary["num_branches"]
        covered += summary["covered_lines"] + summary["covered_branches"]
        lines = (ROOT / "src" / "payagg" / file).read_text().splitlines()
        numbers = {*one["missing_lines"], *(before for before, _ in one["missing_branches"])}
        tally.line(file, [f"{number}: {lines[number - 1].strip()}" for number in sorted(numbers)])
    return tally.end(whole=not only, share=round(100 * covered / whole, 1), modules=tally.tried)
