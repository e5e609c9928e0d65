"""100,000 histories and what they met, or one as a timeline.

Ends with 1 when an invariant does not hold, or when something that must happen sometimes never did.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from lab.kit.tally import Tally
from lab.simulation.history import simulate
from lab.simulation.search import search_all
from lab.simulation.sometimes import never

WHOLE = 100_000
ENOUGH = 5_000  # from so many on everything that may happen must have happened
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
    tally = Tally("simulation", arguments)
    found = search_all(range(chosen.first, chosen.first + chosen.histories), chosen.jobs, print)
    for what, histories in sorted(found.sometimes.items()):
        print(f"{histories:>8}  {what}")
    missed = never(found.sometimes) if found.histories >= ENOUGH else []
    replay = 'replay it with: make lab ARGS="simulation --seed {}"'
    broken = [f"seed {seed}: {what}; {replay.format(seed)}" for seed, what in sorted(found.broken.items())]
    tally.line(f"{found.histories} histories, {len(broken)} broken", broken[:SHOWN_MAX])
    tally.line("what must happen sometimes", [f"NEVER: {what}" for what in missed])
    counts: dict[str, Any] = {"histories": found.histories, "broken": len(broken), "never": len(missed)}
    return tally.end(whole=found.histories >= WHOLE, **counts)
