"""Faults of a Patroni cluster x the routes to it, under load.

Nothing acknowledged may be lost or doubled, no answer false or a 500, no webhook missing, and `payagg doctor` finds no
fault. Our own part of a gap is what remains after somebody else, with plain psycopg, could write again.
"""

import argparse
import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from lab.failover.cell import CellVerdict, a_route, struck
from lab.failover.cluster import Cluster, a_cluster
from lab.failover.faults import FAULTS, ClusterFault
from lab.failover.network import enter_network
from lab.failover.routes import DatabaseRoute, make_databases, proxies
from lab.kit.places import a_folder
from lab.kit.tally import Tally

OURS, FROZEN = 1.0, 25.0  # seconds: bars of our own part of a gap, and of the gap behind a frozen leader


async def run(
    tally: Tally, cluster: Cluster, routes: Sequence[DatabaseRoute], faults: Sequence[ClusterFault], folder: Path
) -> dict[str, list[CellVerdict]]:
    table: dict[str, list[CellVerdict]] = {}
    async with contextlib.AsyncExitStack() as stack:
        loads = [await stack.enter_async_context(a_route(cluster, route, folder)) for route in routes]
        for fault in faults:
            found = await struck(cluster, loads, fault)
            table[fault.word] = list(found.values())
            for route, verdict in found.items():
                gaps = f"gap {verdict.gap:.1f} s, ours {verdict.ours:.1f} s"
                tally.line(f"{fault.name}, {route.value}: {gaps}, {verdict.told}", verdict.wrong)
    return table


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab failover", description=__doc__)
    words = [fault.word for fault in FAULTS]
    parser.add_argument("--only", metavar="FAULT", choices=words, action="append", help=f"one of {', '.join(words)}")
    names = [route.word for route in DatabaseRoute]
    parser.add_argument("--route", choices=names, action="append", help="one of them, beside no other")
    parser.add_argument("--folder", type=Path, help="where logs and data are kept; default: nowhere")
    chosen = parser.parse_args(arguments)
    enter_network(arguments)
    routes = [route for route in DatabaseRoute if route.word in (chosen.route or names)]
    faults = [fault for fault in FAULTS if fault.word in (chosen.only or words)]
    tally = Tally("failover", arguments)
    with contextlib.ExitStack() as stack:
        folder = (chosen.folder or stack.enter_context(a_folder("failover"))).resolve()
        folder.mkdir(exist_ok=True)
        cluster = stack.enter_context(a_cluster(folder))
        stack.enter_context(proxies(cluster, folder))
        make_databases(cluster, routes)
        table = asyncio.run(run(tally, cluster, routes, faults, folder))
    ours = max(one.ours for cells in table.values() for one in cells)
    tally.line(f"our own part of a gap: {ours:.1f} s", ["too long"] * (ours >= OURS))
    gaps = {word: round(max(one.gap for one in cells), 1) for word, cells in table.items()}
    frozen = gaps.get("frozen", 0.0)
    tally.line(f"behind a frozen leader: {frozen} s", ["too long"] * (frozen >= FROZEN))
    whole = not chosen.only and not chosen.route
    return tally.end(whole=whole, ours=round(ours, 1), frozen=frozen, switchover=gaps.get("switchover", 0.0))
