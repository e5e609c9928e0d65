"""Which lines and branches of the money's code no unit test of it runs, or takes one way alone."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.kit.figures import ROOT
from lab.kit.places import a_folder
from lab.kit.tally import Tally
from lab.mutants.modules import MODULES


def measured() -> dict[str, Mapping[str, Any]]:
    """What coverage.py says of each module, by its path below src/payagg."""
    with a_folder("coverage") as folder:
        environ = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'testing'}{os.pathsep}{ROOT}",
            "COVERAGE_FILE": f"{folder}/data",
        }
        coverage = [sys.executable, "-m", "coverage"]
        tests = [f"tests/{test}" for test in dict.fromkeys(test for own in MODULES.values() for test in own)]
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
        report = f"{folder}/report.json"
        for words in (["run", "--branch", "--source=src/payagg", *pytest], ["json", "--quiet", "-o", report]):
            subprocess.run([*coverage, *words], env=environ, cwd=ROOT, check=True)
        files = json.loads(Path(report).read_text())["files"]
    return {file: files[f"src/payagg/{file}"] for file in MODULES}


def main(arguments: Sequence[str]) -> int:
    argparse.ArgumentParser(prog="lab coverage", description=__doc__).parse_args(arguments)
    tally, whole, covered = Tally("coverage", arguments), 0, 0
    for file, one in measured().items():
        summary = one["summary"]
        whole += summary["num_statements"] + summary["num_branches"]
        covered += summary["covered_lines"] + summary["covered_branches"]
        lines = (ROOT / "src" / "payagg" / file).read_text().splitlines()
        numbers = {*one["missing_lines"], *(before for before, _ in one["missing_branches"])}
        tally.line(file, [f"{number}: {lines[number - 1].strip()}" for number in sorted(numbers)])
    return tally.end(whole=True, share=round(100 * covered / whole, 1), modules=len(MODULES))
