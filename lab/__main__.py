"""`make lab` lists the parts; `make lab ARGS="crashes --only w3"` runs one, and `--help` behind its name tells more."""

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.machine import ROOT


@dataclass(frozen=True)
class Part:
    """`lasts` on two cores. `needs`: the Makefile's targets that install what is not in requirements-dev.lock."""

    name: str
    proves: str
    lasts: str
    needs: tuple[str, ...] = ()

    def run(self, arguments: Sequence[str]) -> int:
        if self.needs and "PAYAGG_LAB_INSTALLED" not in os.environ:
            subprocess.run(["make", "--silent", "--no-print-directory", *self.needs], cwd=ROOT, check=True)
        module = importlib.import_module(f"lab.{self.name}.run")
        return int(module.main(arguments))


PARTS = (
    Part("soak", "payagg loses nothing while it is frozen, starved or killed, and does not grow under long load", "50 min",
         needs=("pgbouncer",)),
    Part("overload", "payagg serves at ten times its capacity, and loses nothing", "3 min"),
    Part("crashes", "payagg, Postgres or a connection dies at each step of a payment", "6 min"),
    Part("faults", "the network to each neighbour fails in every way", "7 min"),
    Part("races", "whatever meets in one payment, some order of steps explains the result", "14 min"),
    Part("failover", "a Patroni cluster breaks in nine ways, on each of three routes, also with two releases", "9 min",
         needs=("haproxy", "pgbouncer", "etcd", "patroni")),
    Part("upgrade", "the previous release changes to this one and back, also under faults", "15 min",
         needs=("haproxy", "pgbouncer")),
    Part("fuzz", "the API answers as described, whatever Schemathesis sends", "6 min"),
    Part("parsers", "the parsers of strangers' bytes keep their properties under libFuzzer", "4 min"),
    Part("simulation", "the invariants hold in 100,000 histories in virtual time", "45 min"),
    Part("defects", "a test, the simulation or the harness notices each planted defect", "35 min"),
    Part("mutants", "unit tests notice changes in the code of money", "25 min"),
    Part("cells", "neither a killed cell nor a new one disturbs the others", "5 min"),
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """The exit status: 1 when something does not hold, 2 when there is no such part."""
    if not arguments:
        for part in PARTS:
            print(f"{part.name:<11} {part.lasts:>6}  {part.proves}")
        return 0
    name, *words = arguments
    for part in PARTS:
        if part.name == name:
            return part.run(words)
    print(f"There is no part {name}; there are {', '.join(part.name for part in PARTS)}.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
