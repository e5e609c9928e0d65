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
    module: str = ""
    needs: tuple[str, ...] = ()

    def run(self, arguments: Sequence[str]) -> int:
        if self.needs and "PAYAGG_LAB_INSTALLED" not in os.environ:
            subprocess.run(["make", "--silent", "--no-print-directory", *self.needs], cwd=ROOT, check=True)
        module = importlib.import_module(self.module or f"lab.{self.name}.run")
        return int(module.main(arguments))


PARTS = (
    Part("soak", "frozen or starved, it loses nothing; loaded for long, it does not grow", "40 min"),
    Part("overload", "under ten times its capacity it carries on, and loses nothing", "3 min"),
    Part("crashes", "at each step of a payment we, Postgres or its connections may die", "6 min"),
    Part("faults", "the network to each neighbour may fail in every way", "7 min"),
    Part("races", "whatever meets in one payment, an order of steps explains it; long searches", "14 min"),
    Part("linear", "killed and cut off at random, it loses nothing, and each payment's answers have an order", "15 min",
         needs=("pgbouncer",)),
    Part("failover", "a Patroni cluster may break in nine ways, on each of three routes; of two releases, too", "9 min",
         needs=("haproxy", "pgbouncer", "etcd", "patroni")),
    Part("upgrade", "the previous release rolls to this one and back, and bears faults beside it", "15 min",
         needs=("haproxy", "pgbouncer")),
    Part("fuzz", "the API answers as it is described, whatever Schemathesis sends", "6 min"),
    Part("neutral", "the harness finds nothing in honest servers that are not payagg", "8 min"),
    Part("parsers", "what reads strangers' bytes keeps its properties under libFuzzer", "4 min"),
    Part("attack", "known attacks are held; a new one is a function in lab/attack", "2 min"),
    Part("simulation", "the invariants hold in 100,000 histories in virtual time", "45 min"),
    Part("defects", "each planted defect is noticed by its test, the simulation or the harness", "35 min"),
    Part("mutants", "unit tests notice what is changed in the money's code", "12 min"),
    Part("cells", "a killed cell costs the others nothing, a new one nobody", "5 min"),
    Part("coverage", "no line of the money's code runs with a database alone", "1 min", "lab.mutants.coverage"),
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
