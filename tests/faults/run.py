"""`make faults`: each fault of a network x Postgres, each provider, a merchant's webhook handler.

A proxy stands before each of them. Payers are at every step when the fault begins; afterwards callers who were not
answered repeat themselves, a worker goes on until nothing is due, and the invariants are checked. Exit status 1 when
one is broken. A whole run writes docs/faults.md; `--drawn` tries faults that chance chose.
"""

import argparse
import asyncio
import logging
import random
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import structlog

from tests.crashes.run import INVARIANTS, databases
from tests.faults.cells import CELLS, KINDS, Neighbour, NetworkFaultKind, drawn
from tests.faults.scene import FaultOutcome, tried

DOCUMENT = Path(__file__).parents[2] / "docs" / "faults.md"
BROKEN, IDLE = "BROKEN", "never struck"
Table = dict[tuple[NetworkFaultKind, Neighbour], str]


def run(only: str) -> int:
    chosen = [(kind, place) for kind, place in CELLS if only in f"{kind.name} {place.value}".lower()]
    began = time.monotonic()
    table = {(kind, place): text for kind, place, text in tries(chosen, must_strike=True)}
    broken = sum(BROKEN in text for text in table.values())
    print(f"{len(table) - broken} of {len(table)} faults hold.")
    if len(table) == len(CELLS):
        DOCUMENT.write_text("".join(document(table, (time.monotonic() - began) / 60)))
    return 1 if broken else 0


def run_drawn(number: int, seed: int) -> int:
    """Faults at bytes that nobody chose, some of which strike nobody."""
    told = [text for _, _, text in tries([drawn(seed + turn) for turn in range(number)], must_strike=False)]
    broken, idle = (sum(word in text for text in told) for word in (BROKEN, IDLE))
    print(f"{number - broken} of {number} faults hold, of which {idle} struck nobody.")
    return 1 if broken or idle == number else 0


def tries(
    chosen: Iterable[tuple[NetworkFaultKind, Neighbour]], *, must_strike: bool
) -> Iterator[tuple[NetworkFaultKind, Neighbour, str]]:
    """How each went, told at once as well."""
    with databases() as (made, folder):
        for kind, place in chosen:
            own = folder / f"{kind.name}-{place.name}".lower().replace(" ", "-")
            own.mkdir()
            started = time.monotonic()
            with made.fresh() as url:
                outcome = asyncio.run(tried(url, own, kind, place))
            wrong = [*outcome.wrong, *(["the fault never struck"] if must_strike and not outcome.struck else [])]
            text = cell(outcome, bool(wrong), time.monotonic() - started)
            print(f"{kind.name:<15} {place.value:<13} {text}", *wrong, sep="\n    ", flush=True)
            yield kind, place, text


def cell(outcome: FaultOutcome, is_broken: bool, seconds: float) -> str:
    struck = f"{outcome.struck} struck" if outcome.struck else IDLE
    return f"{struck}, {outcome.refused} refused, {BROKEN if is_broken else 'holds'}, {seconds:.1f} s"


HEAD = """<!-- Written by `make faults`. -->

# Faults of the network

`make faults` puts a proxy ([`FaultProxy`](guide/harness.md#a-network-that-fails)) between the product and its Postgres,
its two providers and a merchant's webhook handler, all of them real servers on loopback, and lets the network fail in
one place. When the fault begins there are sixteen payers, at each provider and at every step: nothing done yet,
initiated, processed, paid with the provider's event still to come. Each goes on while the fault lasts, a worker beside
them. Then it heals: callers who were not answered repeat themselves, half of the payers never come back to verify, and
the worker goes on until nothing is due. Last run: {holds} of {all} hold, in {minutes:.0f} minutes.

{invariants}| | no answer is a 500: success, 503, or 400 `GATEWAY_NOT_AVAILABLE` |
| | no provider and no merchant is called while a database connection is held |

A cell says how often the fault struck (pieces held back, or connections broken), how many requests were refused while
it lasted, and how long all of it took. Answers are waited for 2 s, instead of 8 and 15. `make faults ARGS="--drawn 50"`
tries faults at bytes that chance draws, mostly on the way to Postgres, and `make soak` 200 of them.
[0914](decisions/0914-fault-grid.md) says why so.

"""


def document(table: Table, minutes: float) -> Iterator[str]:
    holds = sum("holds" in text for text in table.values())
    yield HEAD.format(holds=holds, all=len(table), minutes=minutes, invariants=INVARIANTS)
    yield f"| Fault | What happens | {' | '.join(place.value for place in Neighbour)} |\n"
    yield f"| --- | --- |{' --- |' * len(Neighbour)}\n"
    for kind in KINDS:
        yield f"{row(kind)} {' | '.join(table.get((kind, place), '') for place in Neighbour)} |\n"


def row(kind: NetworkFaultKind) -> str:
    """What a run does not change of the fault's line."""
    return f"| {kind.name} | {kind.words} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--only", default="", help="a fault or a place: drip, commit, postgres, merchant")
    parser.add_argument("--drawn", type=int, default=0, help="so many faults drawn by chance, in place of the table")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10_000), help="of the first of them"
    )
    wanted = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return run_drawn(wanted.drawn, wanted.seed) if wanted.drawn else run(wanted.only.lower())


if __name__ == "__main__":
    sys.exit(main())
