"""docs/domain.md: its program runs on the standard library alone."""

import doctest
import re
import subprocess
import sys

import pytest

import payagg.domain
from tests.support.machine import ROOT

PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "domain.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=["statement"])
def test_a_program_runs_with_the_standard_library_alone(program: str) -> None:
    whole = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n{program}"
    # -S leaves site-packages out, so that anything from a third party would fail to import.
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", whole], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_first_example_runs_and_every_name_is_described() -> None:
    ran = doctest.testmod(payagg.domain)
    assert (ran.failed, ran.attempted > 0) == (0, True)
    assert [name for name in payagg.domain.__all__ if not getattr(payagg.domain, name).__doc__] == []
