"""100,000 histories and how many of 1,000 met what, or one as a timeline.

Ends with 1 when an invariant does not hold, or when something that must happen sometimes is too rare.
"""

import argparse
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Final

from payagg_testing.state_machine.model import NOTICES

from lab.kit.figures import RunSummary
from lab.simulation.history import simulate
from lab.simulation.invariants import MOVES

DISPUTES = ("opened", "won", "lost", "accepted")
KILLED = (
    *("before a transaction", "before COMMIT", "after COMMIT", "at a call", "in mid-call", "at a try"),
    "between two turns",
)
COVERAGE_GOALS: Final = frozenset(
    {
        *(f"{before} moves to {after}" for before, after in MOVES),
        *(f"anomaly {kind}" for kind in (*NOTICES, "LATE_FAILURE", "UNKNOWN_STATUS")),
        *(f"a dispute is {state}" for state in DISPUTES),
        *(f"a process is killed {where}" for where in KILLED),
        "a COMMIT has no answer",
        "a client gives up waiting",
        "a delivery arrives twice",
        "a delivery is given up",
        "a delivery that may kill its workers is sent alone",
        "a delivery's lease runs out",
        "a drain ends with a payment in flight",
        "a gateway is pointed at another account",
        "a payer comes to a gateway that drains",
        "a payment is paid by two charges",
        "a process is killed between claim and hand-off",
        "an event comes before its charge's hand-off is kept",
        "both providers decline a card",
        "credentials are replaced with a payment in flight",
        "the clock goes back",
        "a payment expires while its charge is begun",
        "a process freezes",
        "a process is stopped in order",
        "a provider is away for a while",
        "a provider is paused after faults",
        "a provider's event is lost",
        "a reference is paid twice",
        "a sparse ask finds that money went back",
        "a stale claim is taken over",
        "a transaction is rolled back and done again",
        "an answer to a client is lost",
        "an event is acknowledged twice",
        "an event is proved whose gateway's credentials are wiped",
        "an event of a deleted gateway is proved",
        "an idempotency key is replayed",
        "an idempotency key is used after completion",
        "another account is asked about a charge",
        "events arrive out of order",
        "money goes back before its success is known",
        "money of a FAILED payment goes back",
        "the database is down for a while",
    }
)


def never(sometimes: Counter[str]) -> list[str]:
    """Which of them did not happen."""
    return sorted(what for what in COVERAGE_GOALS if not sometimes[what])


BATCH = 50  # histories that a job lives through at once
TOLD_EVERY = 20  # batches


@dataclass
class SearchResult:
    """What some histories came to; `sometimes` counts the histories in which a thing happened."""

    histories: int = 0
    sometimes: Counter[str] = field(default_factory=Counter)
    broken: dict[int, str] = field(default_factory=dict)  # by seed

    def add(self, other: "SearchResult") -> None:
        self.histories += other.histories
        self.sometimes.update(other.sometimes)
        self.broken.update(other.broken)


def search(seeds: Sequence[int]) -> SearchResult:
    """Lives through a history of each seed."""
    found = SearchResult()
    for seed in seeds:
        history = simulate(seed)
        found.histories += 1
        found.sometimes.update(dict.fromkeys(+history.sometimes, 1))  # those that came at least once
        if history.broken is not None:
            found.broken[seed] = str(history.broken)
    return found


def search_all(seeds: range, jobs: int, say: Callable[[str], None]) -> SearchResult:
    """The same in `jobs` processes; `say` is told now and then how far it has come."""
    found = SearchResult()
    # Fresh interpreters: no job inherits what another has imported or drawn.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = [pool.submit(search, seeds[at : at + BATCH]) for at in range(0, len(seeds), BATCH)]
        for number, part in enumerate(as_completed(parts), start=1):
            found.add(part.result())
            if number % TOLD_EVERY == 0:
                say(f"... {found.histories} histories, broken: {sorted(found.broken) or 'none'}")
    return found


WHOLE = 100_000
ENOUGH = 5_000  # from so many on each goal must have its rate
RATE_MIN = 1.0  # of 1,000 histories
SHOWN_MAX = 20


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="tell this one history as a timeline")
    parser.add_argument("--histories", type=int, default=WHOLE)
    parser.add_argument("--first", type=int, default=0, help="the first seed; the others follow it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        history = simulate(chosen.seed)
        print(history.timeline())
        return int(history.broken is not None)
    tally = RunSummary("simulation", arguments)
    found = search_all(range(chosen.first, chosen.first + chosen.histories), chosen.jobs, print)
    rates = {what: round(1000 * found.sometimes[what] / found.histories, 1) for what in sorted(COVERAGE_GOALS)}
    for what, rate in rates.items():
        print(f"{rate:>8}  {what}")
    rare = [f"{what}: {rate}" for what, rate in rates.items() if rate < RATE_MIN] if found.histories >= ENOUGH else []
    replay = 'replay it with: make lab ARGS="simulation --seed {}"'
    broken = [f"seed {seed}: {what}; {replay.format(seed)}" for seed, what in sorted(found.broken.items())]
    tally.line(f"{found.histories} histories, {len(broken)} broken", broken[:SHOWN_MAX])
    tally.line(f"what must happen sometimes, in {RATE_MIN} of 1,000 histories at least", rare)
    counts: dict[str, Any] = {"histories": found.histories, "broken": len(broken), "never": len(rare), "rates": rates}
    return tally.end(whole=found.histories >= WHOLE, **counts)
