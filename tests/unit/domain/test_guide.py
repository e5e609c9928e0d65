"""docs/domain.md: its programs run on the standard library alone, are typed, and agree with what the guide says."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import payagg.domain
from tests.support.machine import ROOT

PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "domain.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=["statement", "offer"])
def test_a_program_runs_with_the_standard_library_alone(program: str) -> None:
    whole = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n{program}"
    # -S leaves site-packages out, so that anything from a third party would fail to import.
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", whole], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_first_example_runs_and_every_name_is_described() -> None:
    ran = doctest.testmod(payagg.domain)
    assert (ran.failed, ran.attempted > 0) == (0, True)
    assert [name for name in payagg.domain.__all__ if not getattr(payagg.domain, name).__doc__] == []


def test_the_programs_are_typed(tmp_path: Path) -> None:
    for number, program in enumerate(PROGRAMS):
        (tmp_path / f"program_{number}.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)]
    environ = {"MYPYPATH": str(ROOT / "src"), "PATH": ""}
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
