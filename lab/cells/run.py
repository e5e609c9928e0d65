"""Three cells and HAProxy under load: a cell and HAProxy are killed and come back, and a fourth cell is added."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from lab.cells.site import ADDED, FRONT, CellSite, three_cells_running
from lab.kit.buyer import Buyer, Load, Phase, a_client, loaded
from lab.kit.figures import RunSummary
from lab.kit.judgement import wrongs
from lab.kit.places import a_folder
from lab.kit.site import shop_over_http
from tests.support.cell_world import NAMES
from tests.support.http_world import bearer, merchant_token

KILLED = "PBX"
SHOPS = 3  # of each cell
PAUSE = 0.1  # seconds between two journeys of one business
AWAY = ("503", "502", "RemoteProtocolError")
FRONT_AWAY = ("ConnectError", "ReadError", "WriteError", "RemoteProtocolError")


@dataclass
class CellShop:
    cell: str
    business: str
    owner: str
    buyer: Buyer

    def journey(self, run: str) -> Callable[[int], Awaitable[None]]:
        """With a look at the business, as its owner takes it."""
        buys, headers = self.buyer.journey(f"{self.owner} {run}"), bearer(merchant_token(self.owner))

        async def goes(number: int) -> None:
            await buys(number)
            await self.buyer.told("GET", f"/merchant/businesses/{self.business}", headers=headers)

        return goes


async def opened(client: httpx.AsyncClient, cell: str, number: int) -> CellShop:
    """A business of that cell, made through HAProxy."""
    owner = f"owner-{cell.lower()}-{number}"
    business, as_business = await shop_over_http(client, f"{cell} {number}", owner, **{"X-Payagg-Cell": cell})
    return CellShop(cell, business, owner, Buyer([client], as_business, business))


async def phase(site: CellSite, shops: list[CellShop], name: str, seconds: float) -> dict[str, Phase]:
    """What became of the requests of each cell while that happened."""
    phases = {cell: Phase(f"{name}: {cell}") for cell in site.cells}
    for shop in shops:
        shop.buyer.phase = phases[shop.cell]
    loads = [Load(shop.journey(name), PAUSE) for shop in shops]
    async with loaded(*loads):
        await asyncio.sleep(seconds / 5)
        for act in ACTS[name]:
            await asyncio.to_thread(act, site)
        await asyncio.sleep(seconds)
    return phases


ACTS: dict[str, tuple[Callable[[CellSite], None], ...]] = {
    "three cells": (),
    f"{KILLED} killed": (lambda site: site.kill(KILLED),),
    f"{KILLED} back": (lambda site: site.start(KILLED),),
    f"{FRONT} killed": (lambda site: site.kill(FRONT), lambda site: site.start(FRONT)),
    f"{ADDED} added": (CellSite.add,),
    "four cells": (),
}


def judged(tally: RunSummary, phases: dict[str, Phase], name: str) -> int:
    """Other cells' businesses lose nothing, and the killed cell's are told 503 and nothing else, but for a request that
    HAProxy had sent it already: 502, or a connection that ends. How often."""
    refused = 0
    for cell, found in phases.items():
        away = FRONT_AWAY if name.startswith(FRONT) else AWAY if name.startswith(KILLED) and cell == KILLED else ()
        allowed = sum(count for what, count in found.failed.items() if what.startswith(away))
        wrong = [f"{found.failed.total() - allowed} requests failed"] if found.failed.total() > allowed else []
        tally.line(str(found), wrong + ["nothing was answered"] * (not found.good))
        refused += allowed
    return refused


async def tried(site: CellSite, tally: RunSummary, seconds: float) -> dict[str, Any]:
    """The figures."""
    unavailable = 0
    async with a_client(0, base_url=f"{site.origin()}/api/v1") as client:
        shops = [await opened(client, name, number) for name in NAMES for number in range(SHOPS)]
        for name in ACTS:
            if ADDED in site.cells:
                shops += [await opened(client, ADDED, number) for number in range(SHOPS)]
            unavailable += judged(tally, await phase(site, shops, name, seconds), name)
    for cell in site.cells:
        own = [shop.buyer for shop in shops if shop.cell == cell]
        strange = [one.reference for buyer in own for one in buyer.purchases if not one.reference.startswith(cell)]
        wrong = wrongs(site.databases[cell].url, own) + [f"{one} is of another cell" for one in strange]
        tally.line(f"{cell}: what was acknowledged is there", wrong)
        doctor = site.command("doctor", cell=cell)
        tally.line(f"{cell}: doctor", [doctor.stdout] * bool(doctor.returncode))
    listed = site.command("cell", "list")
    tally.line("cell list", [listed.stdout + listed.stderr] * bool(listed.returncode))
    journeys = sum(one.status == "SUCCESS" for shop in shops for one in shop.buyer.purchases)
    return {"journeys": journeys, "unavailable": unavailable}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab cells", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each phase of the load")
    seconds = parser.parse_args(arguments).seconds
    tally = RunSummary("cells", arguments)
    with a_folder("cells") as folder, three_cells_running(folder) as site:
        found = asyncio.run(tried(site, tally, seconds))
    return tally.end(whole=seconds >= 15, **found)
