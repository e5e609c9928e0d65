"""The race grid and the crowds of `make test`, in many times as many rounds."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from lab.kit.tally import Tally
from tests.support.rounds import SHORT

FILES = {
    "pairs": "tests/integration/postgres/test_race_grid.py",
    "crowds": "tests/integration/postgres/test_race_crowds.py",
}
TIMES = 100


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab races", description=__doc__)
    parser.add_argument("--only", choices=FILES)
    parser.add_argument("--times", type=int, default=TIMES, help="as many rounds as in `make test`")
    chosen = parser.parse_args(arguments)
    tally = Tally("races", arguments)
    for name, file in FILES.items():
        if chosen.only in (None, name):
            environ = os.environ | {"PAYAGG_TEST_ROUNDS": str(chosen.times * SHORT)}
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", file], env=environ, check=False)
            tally.line(name, [] if done.returncode == 0 else ["see above"])
    return tally.end(whole=chosen.only is None and chosen.times >= TIMES, times=chosen.times)
