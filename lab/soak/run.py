"""Freezes, starves or kills processes under load, and loads steadily for half an hour."""

import argparse
import asyncio
from collections.abc import Sequence

import psutil

from lab.kit.buyer import Buyer, Load, a_client
from lab.kit.figures import RunSummary
from lab.kit.places import a_folder, a_postgres
from lab.kit.site import UNLIMITED, opened_shop
from lab.soak.hardships import HARDSHIPS, tried
from tests.support.processes import serving

JOURNEYS = 20  # begun each second
REQUESTS = 5  # of one
WARM_SECONDS = 120.0  # until memory is looked at
LOOK_SECONDS = 10.0
REACHED = 0.95  # of the rate, or the figures are of another load
GROWTH = 0.05


async def measured(url: str, seconds: float) -> tuple[Buyer, list[int]]:
    """Who bought, and bytes of all processes now and then."""
    shop = await opened_shop(url)
    memory: list[int] = []
    with serving(url, "--workers", "2", **UNLIMITED) as (process, origin):
        async with a_client(0, base_url=f"{origin}/api/v1") as client:
            buyer = Buyer([client], shop.as_sandbox, shop.business.id)
            load = Load(buyer.journey("steady"), 1 / JOURNEYS)
            running = asyncio.create_task(load.evenly())
            asyncio.get_running_loop().call_later(seconds, load.finish)
            await asyncio.sleep(min(WARM_SECONDS, seconds / 3))
            while not running.done():
                whole = psutil.Process(process.pid)
                memory.append(sum(one.memory_info().rss for one in (whole, *whole.children(recursive=True))))
                await asyncio.wait([running], timeout=LOOK_SECONDS)
            await running
    return buyer, memory


def steady(arguments: Sequence[str], minutes: float) -> int:
    tally = RunSummary("soak", arguments)
    with a_folder("steady") as folder, a_postgres(folder) as postgres:
        buyer, memory = asyncio.run(measured(postgres.url, minutes * 60))
    faults = buyer.phase.failed.total()
    requests, growth = buyer.phase.good + faults, memory[-1] / memory[0] - 1
    rate = round(requests / (minutes * 60))
    is_reached = rate >= REACHED * JOURNEYS * REQUESTS
    tally.line(f"rate: {rate} requests a second", [] if is_reached else ["this machine has something else to do"])
    tally.line(f"answers: {buyer.phase}", [*buyer.false, *(f"{n} x {name}" for name, n in buyer.phase.failed.items())])
    held = f"{growth:+.1%} ({memory[-1] >> 20} MiB)"
    tally.line(f"memory: {held}", [] if growth < GROWTH else ["it grows"])
    found = {"rate": rate, "requests": requests, "faults": faults, "growth": held}
    return tally.end(whole=is_reached and minutes >= 30, name="soak steady", **found)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab soak", description=__doc__)
    parser.add_argument("--only", choices=("hardships", "steady", *(one.name for one in HARDSHIPS)))
    parser.add_argument("--minutes", type=float, default=30.0, help="of the steady load")
    chosen = parser.parse_args(arguments)
    status = 0
    if chosen.only != "steady":
        tally = RunSummary("soak", arguments)
        named = [one for one in HARDSHIPS if chosen.only in (None, "hardships", one.name)]
        tried(tally, named)
        status |= tally.end(whole=len(named) == len(HARDSHIPS), name="soak hardships")
    if chosen.only in (None, "steady"):
        status |= steady(arguments, chosen.minutes)
    return status
