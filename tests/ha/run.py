"""`make ha`: faults of a Patroni cluster x the routes to it, under load.

Exit status 1 when something acknowledged was lost or doubled, an answer was false or a 500, a webhook did not arrive,
or `payagg doctor` finds a fault. A whole run writes docs/failover.md.
"""

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from payagg.adapters.postgres.embedded.programs import MAJOR
from tests.ha.cell import CellVerdict, struck
from tests.ha.cluster import PATRONI, Cluster, a_cluster
from tests.ha.deployment import a_deployment, make_databases
from tests.ha.faults import FAULTS, ClusterFault
from tests.ha.load import EVERY
from tests.ha.machine import enter_network
from tests.ha.routes import DatabaseRoute, proxies
from tests.ha.table import DOCUMENT, document, line


async def run(
    cluster: Cluster, routes: Sequence[DatabaseRoute], faults: Sequence[ClusterFault], folder: Path
) -> dict[tuple[ClusterFault, DatabaseRoute], CellVerdict]:
    table = {}
    async with contextlib.AsyncExitStack() as stack:
        deployments = [await stack.enter_async_context(a_deployment(cluster, route, folder)) for route in routes]
        for fault in faults:
            found = await struck(cluster, deployments, fault)
            for route, verdict in found.items():
                table[fault, route] = verdict
                print(line(fault, route, verdict), dict(verdict.failed), flush=True)
                for wrong in verdict.faults[:10]:
                    print(f"    {wrong}", flush=True)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="make ha", description=__doc__)
    words = [fault.word for fault in FAULTS]
    parser.add_argument("--only", metavar="FAULT", choices=words, action="append", help=f"one of {', '.join(words)}")
    names = [route.word for route in DatabaseRoute]
    parser.add_argument("--route", choices=names, action="append", help="one of them, beside no other")
    parser.add_argument("--folder", type=Path, help="where logs and data are kept; default: nowhere")
    chosen = parser.parse_args()
    enter_network()
    routes = [route for route in DatabaseRoute if route.word in (chosen.route or names)]
    faults = [fault for fault in FAULTS if fault.word in (chosen.only or words)]
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = chosen.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payagg-ha-")))
        folder.mkdir(exist_ok=True)
        cluster = stack.enter_context(a_cluster(folder.resolve()))
        stack.enter_context(proxies(cluster, folder.resolve()))
        make_databases(cluster, routes)
        table = asyncio.run(run(cluster, routes, faults, folder.resolve()))
    if len(table) == len(FAULTS) * len(DatabaseRoute):
        minutes = (time.monotonic() - began) / 60
        DOCUMENT.write_text(document(table, minutes=minutes, rate=1 / EVERY, **versions()), "utf-8")
    broken = sum(bool(verdict.faults) for verdict in table.values())
    print(f"{len(table) - broken} of {len(table)} cells hold.")
    return 1 if broken else 0


def versions() -> dict[str, str]:
    said = subprocess.run([str(PATRONI), "--version"], capture_output=True, text=True, check=True).stdout
    return {"patroni": said.split()[-1], "postgres": str(MAJOR)}


if __name__ == "__main__":
    sys.exit(main())
