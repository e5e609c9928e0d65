"""`python -m payagg.testing.simulation`: many histories and what they met, or one as a timeline.

Ends with 1 when an invariant does not hold, or when something that must happen sometimes never did.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from payagg.testing.simulation.history import simulate
from payagg.testing.simulation.search import search_all
from payagg.testing.simulation.sometimes import never

ENOUGH = 5_000  # from so many on everything that may happen must have happened
SHOWN_MAX = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="tell this one history as a timeline")
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed; the others follow it")
    parser.add_argument("--figures", type=Path, help="a JSON file for the day and the counts")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        history = simulate(chosen.seed)
        _say(history.timeline())
        return int(history.broken is not None)
    started = time.monotonic()
    found = search_all(range(chosen.first, chosen.first + chosen.histories), chosen.jobs, _say)
    seconds = time.monotonic() - started
    missed = never(found.sometimes) if found.histories >= ENOUGH else []
    for what, histories in sorted(found.sometimes.items()):
        _say(f"{histories:>8}  {what}")
    for what in missed:
        _say(f"{'NEVER':>8}  {what}")
    for seed, what in sorted(found.broken.items())[:SHOWN_MAX]:
        _say(f"seed {seed}: {what}\n    replay it with: make simulate SEED={seed}")
    _say(f"{found.histories} histories, {found.histories / seconds:.1f} each second, {len(found.broken)} broken")
    if chosen.figures is not None:
        counts = {"histories": found.histories, "broken": len(found.broken), "never": len(missed)}
        whole = {"date": time.strftime("%Y-%m-%d", time.gmtime()), **counts}
        chosen.figures.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    return int(bool(found.broken or missed))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
