"""Each fault of a network x Postgres, each provider, a merchant's webhook handler; or faults drawn by chance.

A proxy stands before each of them. Sixteen payers are at every step when the fault begins; afterwards callers who were
not answered repeat themselves, a worker goes on until nothing is due, and the invariants INV1 to INV8 are checked, no
answer is a 500, and nobody is called while a database connection is held.
"""

import argparse
import asyncio
import logging
import random
import time
from collections.abc import Sequence

import structlog

from lab.faults.cells import CELLS, drawn
from lab.faults.scene import tried
from lab.kit.places import databases
from lab.kit.tally import Tally


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab faults", description=__doc__)
    parser.add_argument("--only", default="", help="a fault or a place: drip, commit, postgres, merchant")
    parser.add_argument("--drawn", type=int, default=0, help="so many faults drawn by chance, in place of the table")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10_000), help="of the first of them"
    )
    chosen = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    table = [(kind, place) for kind, place in CELLS if chosen.only.lower() in f"{kind.name} {place.value}".lower()]
    tally, idle = Tally("faults", arguments), 0
    with databases("faults") as made:
        for kind, place in [drawn(chosen.seed + turn) for turn in range(chosen.drawn)] or table:
            began = time.monotonic()
            with made.fresh() as (url, folder):
                found = asyncio.run(tried(url, folder, kind, place))
            idle += not found.struck
            # One that is drawn may strike nobody; of the table's each must.
            wrong = found.wrong + ["it never struck"] * (not found.struck and not chosen.drawn)
            counts = f"{found.struck} struck, {found.refused} refused, {time.monotonic() - began:.1f} s"
            tally.line(f"{kind.name:<15} {place.value:<13} {counts:<34} {kind.words}", wrong)
    if chosen.drawn:
        status = tally.end(whole=chosen.drawn >= 100, name="faults drawn", idle=idle)
        return 1 if idle == chosen.drawn else status
    return tally.end(whole=not chosen.only)
