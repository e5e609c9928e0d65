"""The race grid and the crowds of `make test`, in many times as many rounds."""

import argparse
from collections.abc import Sequence

from lab.kit.figures import Tally

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
            tally.searched(name, file, chosen.times)
    return tally.end(whole=chosen.only is None and chosen.times >= TIMES, times=chosen.times)
