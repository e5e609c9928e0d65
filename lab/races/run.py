"""The tests of `make test` that search, with many times as many rounds: the race grid, its crowds, and histories that
are compared with a model."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from lab.kit.figures import RunSummary
from tests.support.rounds import SHORT

STORE = "tests/integration/postgres"
# As many times as many rounds.
SEARCHES = {
    "pairs": (100, (f"{STORE}/test_race_grid.py",)),
    "crowds": (100, (f"{STORE}/test_race_crowds.py",)),
    "machines": (10, ("tests/unit/testing/test_payment_machine.py", f"{STORE}/test_payment_machine.py")),
    "conformance": (10, (f"{STORE}/test_conformance.py",)),
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab races", description=__doc__)
    parser.add_argument("--only", choices=SEARCHES)
    parser.add_argument("--times", type=int, help="as many rounds as in `make test`; default: 100, and 10 of histories")
    chosen = parser.parse_args(arguments)
    tally = RunSummary("races", arguments)
    for name, (times, files) in SEARCHES.items():
        if chosen.only in (None, name):
            rounds = {"PAYAGG_TEST_ROUNDS": str((chosen.times or times) * SHORT)}
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *files]
            done = subprocess.run(command, env=os.environ | rounds, check=False)
            tally.line(name, [] if done.returncode == 0 else ["see above"])
    return tally.end(whole=chosen.only is None and chosen.times is None)
