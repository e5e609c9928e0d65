"""`make soak`: searches of `make test` for as long as a night has. Notes for the scorecard what each part found.

A part that fails leaves what was noted before; exit status 1.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

from tests.scorecard.figures import note
from tests.support.rounds import SHORT

STORE = "tests/integration/store"


@dataclass(frozen=True)
class Part:
    """`times` as many rounds as in `make test`. The numbers that `pattern` finds are added up, and so are its finds."""

    times: int
    module: str
    pattern: str = r"(?P<passed>[0-9]+) passed"


PARTS = {
    "kills": Part(60, "pytest -n 0 tests/soak", r"seed [0-9]+: (?P<payments>[0-9]+) payments"),
    "machines": Part(
        100,
        f"pytest -n 2 tests/unit/test_payment_machine.py {STORE}/test_payment_machine.py {STORE}/test_conformance.py",
    ),
    "crowds": Part(100, f"pytest -n 2 {STORE}/test_race_crowds.py"),
    "pairs": Part(100, f"pytest -n 2 {STORE}/test_race_grid.py"),
    "faults": Part(1, "tests.faults.run --drawn 200", r"(?P<holds>[0-9]+) of (?P<drawn>[0-9]+) faults hold"),
}


def run(name: str) -> bool:
    """Whether it holds; what it prints is told at once."""
    part, began, told = PARTS[name], time.monotonic(), []
    environ = os.environ | {"PAYAGG_TEST_ROUNDS": str(part.times * SHORT)}
    command = [sys.executable, "-m", *part.module.split()]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            told.append(line)
    found = figures(part, "".join(told))
    if running.returncode or not found["rounds"]:
        return False
    note(f"soak-{name}", times=part.times, minutes=round((time.monotonic() - began) / 60, 1), **found)
    return True


def figures(part: Part, told: str) -> dict[str, int]:
    """By the names of the pattern's groups, and `rounds` for how often it was found."""
    sums = Counter(rounds=0)
    for found in re.finditer(part.pattern, told):
        sums.update(rounds=1, **{name: int(number) for name, number in found.groupdict().items()})
    return dict(sums)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part")
    only = parser.parse_args().only
    # All of them, also after one that fails.
    held = [run(name) for name in PARTS if only in (None, name)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
