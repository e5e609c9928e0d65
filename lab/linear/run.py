"""Up to 64 clients at a few payments at a time, over HTTP, while processes and Postgres are killed and connections cut;
each payment's history must be one that a sequential payment could have had."""

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
from payagg_testing.fault_proxy import FaultProxy
from payagg_testing.network_faults import DropReply

from lab.kit.buyer import a_client
from lab.kit.figures import RunSummary
from lab.kit.places import a_folder, a_postgres
from lab.kit.processes import cut_connections, kill_postgres
from lab.kit.site import UNLIMITED, Site, a_site, opened_shop
from lab.linear.faults import FAULTS, caught
from lab.linear.load import AFTER_FAULT, LinearLoad
from lab.linear.model import Order
from payagg.adapters.postgres.doctor import examine

CREW = ("both", "both")
OPERATIONS = 120_000
ROUND = 10_000  # operations; what a round leaves is checked before the next
PATIENCE = 10.0  # seconds for an answer
CALM = (200, 1200)  # answers from one fault to the next
LOST = 8  # answers
# How often each strikes.
STRIKES = {"process killed": 4, "Postgres killed": 1, "database cut off": 3, "clients cut off": 4, "answers lost": 4}
Strikes = Callable[[], Awaitable[None]]


async def strike(site: Site, folder: Path, url: str, proxies: Sequence[FaultProxy], chance: random.Random) -> str:
    """One fault, and its name."""
    [name] = chance.choices(list(STRIKES), list(STRIKES.values()))
    if name == "process killed":
        site.processes.kill(chance.choice(list(site.ports)))
        await asyncio.to_thread(site.start)
    elif name == "Postgres killed":
        await asyncio.to_thread(kill_postgres, folder / "state")
    elif name == "database cut off":
        with suppress(psycopg.OperationalError):  # it may be down
            await asyncio.to_thread(cut_connections, url)
    else:
        proxy = chance.choice(proxies)
        if name == "clients cut off":
            proxy.cut()
        else:
            proxy.impose(DropReply(), times=LOST)
    return name


async def a_round(load: LinearLoad, site: Site, operations: int, first: int, strikes: Strikes) -> list[Order]:
    """The orders of about so many operations, while things break."""
    working = asyncio.create_task(load.orders(operations, first))
    while not working.done():
        due = load.answered + load.chance.randrange(*CALM)
        while load.answered < due and not working.done():
            await asyncio.wait([working], timeout=AFTER_FAULT)
        await strikes()
    await asyncio.to_thread(site.start)
    orders = await working
    await asyncio.gather(*map(load.last_look, orders))
    return orders


async def tried(tally: RunSummary, operations: int, seed: int) -> dict[str, Any]:
    """The figures of a run."""
    chance, struck, references, refused_orders, known = random.Random(seed), Counter[str](), 0, 0, set[str]()
    with a_folder("linear") as folder, a_postgres(folder) as postgres:
        url = postgres.url
        async with a_site(url, folder, CREW, **UNLIMITED) as site, AsyncExitStack() as stack:
            proxies = [await stack.enter_async_context(FaultProxy("127.0.0.1", port)) for port in site.ports.values()]
            clients = [await stack.enter_async_context(a_client(one.port, timeout=PATIENCE)) for one in proxies]
            strangers = [site.shop.as_live, (await opened_shop(url)).as_sandbox]
            load = LinearLoad(site.shop, site.provider, clients, strangers, chance)

            async def strikes() -> None:
                struck[await strike(site, folder, url, proxies, chance)] += 1

            while load.made < operations:
                of_round = min(ROUND, operations - load.made)
                orders = await a_round(load, site, of_round, references, strikes)
                references += len(orders)
                known |= set(caught(orders))
                refused_orders += len(broken := list(filter(None, (order.wrong() for order in orders))))
                wrong = [*load.wrong, *(line for lines in broken for line in lines)]
                wrong += [f"doctor: {rule.rule}" for rule in examine(url).rules if not rule.is_kept]
                wrong += site.processes.errors() if wrong else []
                load.wrong = []
                told = f"{load.made:,} operations, {references:,} references, {load.unknown.total()} without an answer"
                tally.line(f"seed {seed}: {told}; " + ", ".join(f"{n} x {name}" for name, n in struck.items()), wrong)
            for name in list(site.processes.running):
                site.processes.stop(name)
    missed = [fault for fault in FAULTS if fault not in known]
    tally.line(f"{len(known)} of {len(FAULTS)} planted faults caught", missed)
    return {
        "operations": load.made,
        "references": references,
        "refused": refused_orders,
        "caught": len(known),
        "unknown": load.unknown.total(),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab linear", description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--seed", type=int, help="of the clients and the faults; the machine's timing is not drawn")
    chosen = parser.parse_args(arguments)
    tally = RunSummary("linear", arguments)
    seed = random.SystemRandom().randrange(10_000) if chosen.seed is None else chosen.seed
    figures = asyncio.run(tried(tally, chosen.operations, seed))
    return tally.end(whole=chosen.operations >= OPERATIONS, **figures)
