"""`make coverage`: which lines and branches of the money's code no unit test of it runs; writes docs/uncovered.md."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.mutants.modules import MODULES

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "uncovered.md"


def measured() -> dict[str, Mapping[str, Any]]:
    """What coverage.py says of each module, by its path below src/payagg."""
    with tempfile.TemporaryDirectory(prefix="payagg-coverage-") as folder:
        environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "COVERAGE_FILE": f"{folder}/data"}
        coverage = [sys.executable, "-m", "coverage"]
        tests = [f"tests/{test}" for test in dict.fromkeys(test for own in MODULES.values() for test in own)]
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
        report = f"{folder}/report.json"
        for words in (["run", "--branch", "--source=src/payagg", *pytest], ["json", "--quiet", "-o", report]):
            subprocess.run([*coverage, *words], env=environ, cwd=ROOT, check=True)
        files = json.loads(Path(report).read_text())["files"]
    return {file: files[f"src/payagg/{file}"] for file in MODULES}


HEAD = """<!-- Written by `make coverage`. -->

# Uncovered lines of the money's code

What the unit tests of these modules (`tests/mutants/modules.py`) run of them, by coverage.py with branches:
{share:.1f} %. Each line that none of them runs, and each of which they take one way alone, is named below.

| Module | Statements and branches | Covered |
| --- | --- | --- |
"""


def document(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    sizes = {file: _sizes(one["summary"]) for file, one in found.items()}
    share = sum(covered for _, covered in sizes.values()) / sum(whole for whole, _ in sizes.values())
    yield HEAD.format(share=100 * share)
    for file, (whole, covered) in sizes.items():
        yield f"| `{file}` | {whole} | {covered} |\n"
    for file, one in found.items():
        numbers = {*one["missing_lines"], *(before for before, _ in one["missing_branches"])}
        if numbers:
            lines = (ROOT / "src" / "payagg" / file).read_text().splitlines()
            yield f"\n`{file}`:\n\n```python\n"
            yield from (f"{lines[number - 1].strip()}  # {number}\n" for number in sorted(numbers))
            yield "```\n"


def _sizes(summary: Mapping[str, int]) -> tuple[int, int]:
    """Statements and branches, and how many of them are covered."""
    whole = summary["num_statements"] + summary["num_branches"]
    return whole, summary["covered_lines"] + summary["covered_branches"]


if __name__ == "__main__":
    DOCUMENT.write_text("".join(document(measured())))
    print(f"wrote {DOCUMENT.relative_to(ROOT)}")
