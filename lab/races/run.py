"""The tests of `make test` that search, with many times as many rounds: the race grid, its crowds, and histories that
are compared with a model. With --orders, every order of the statements of each pair of calls, and of two triples."""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence

from lab.kit.figures import RunSummary
from lab.kit.places import a_folder, a_postgres
from lab.races.orders import CROWDS, a_stepped_grid, every_order
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
    parser.add_argument("--orders", action="store_true", help="instead of the searches")
    parser.add_argument("--most", type=int, help="orders of one crowd; default: all")
    parser.add_argument("--crowd", default="", help="of those whose names hold this text")
    chosen = parser.parse_args(arguments)
    tally = RunSummary("races", arguments)
    if chosen.orders:
        found = asyncio.run(_try_orders(tally, chosen.most, chosen.crowd))
        is_whole = chosen.most is None and not chosen.crowd
        return tally.end(whole=is_whole, name="races orders", crowds=len(CROWDS), **found)
    for name, (times, files) in SEARCHES.items():
        if chosen.only in (None, name):
            rounds = {"PAYAGG_TEST_ROUNDS": str((chosen.times or times) * SHORT)}
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *files]
            done = subprocess.run(command, env=os.environ | rounds, check=False)
            tally.line(name, [] if done.returncode == 0 else ["see above"])
    return tally.end(whole=chosen.only is None and chosen.times is None)


async def _try_orders(tally: RunSummary, most: int | None, crowd: str) -> dict[str, int]:
    orders = left = 0
    with a_folder("races") as folder, a_postgres(folder) as server:
        async with a_stepped_grid(server.url, folder) as (grid, turns):
            for names in (one for one in CROWDS if crowd in ", ".join(one)):
                found = await every_order(grid, turns, names, most)
                orders, left = orders + found.orders, left + found.left
                told = f"{found.orders} orders of up to {found.longest} round trips, {found.waited} times one waited, {found.left} ends left"
                tally.line(f"{', '.join(names)}: {told}", found.broken)
    return {"orders": orders, "left": left}
