"""Up to 64 clients at a few payments at a time, over HTTP, while processes and Postgres are killed and connections cut;
each payment's history must be one that a sequential payment could have had."""

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from payagg_testing.fault_proxy import FaultProxy
from payagg_testing.network_faults import DropReply

from lab.kit.buyer import a_client
from lab.kit.figures import RunSummary
from lab.kit.places import a_folder, a_postgres
from lab.kit.processes import cut_connections, kill_postgres
from lab.kit.site import UNLIMITED, Installed, Site, a_site, opened_shop
from lab.linear.load import AFTER_FAULT, END, LinearLoad
from lab.linear.model import Order
from tests.support.pgbouncer import a_pgbouncer

# What `payagg serve` is, and `payagg serve --no-worker` beside `payagg worker`, on several machines.
CREWS = {"direct": ("both",) * 2, "pooled": ("api",) * 3 + ("worker",) * 2}
SERVER_CONNECTIONS = 20  # that a PgBouncer makes of those of all processes
OPERATIONS = 120_000
ROUND = 10_000  # operations; what a round leaves is checked before the next
LAST = 400  # operations of the last round: a payment is asked about soon after its hand-off, and seldom later
PATIENCE = 10.0  # seconds for an answer
CALM = (100, 800)  # answers from one fault to the next
LOST = 8  # answers
# How often each strikes.
STRIKES = {"process killed": 4, "Postgres killed": 1, "database cut off": 3, "clients cut off": 4, "answers lost": 4}
Strikes = Callable[[], Awaitable[None]]


async def strike(site: Site, folder: Path, proxies: Sequence[FaultProxy], chance: random.Random) -> str:
    """One fault, and its name."""
    [name] = chance.choices(list(STRIKES), list(STRIKES.values()))
    if name == "process killed":
        site.processes.kill(chance.choice(list(site.ports)))
        await asyncio.to_thread(site.start)
    elif name == "Postgres killed":
        await asyncio.to_thread(kill_postgres, folder / "state")
    elif name == "database cut off":
        with suppress(psycopg.OperationalError):  # it may be down
            await asyncio.to_thread(cut_connections, site.direct)
    else:
        proxy = chance.choice(proxies)
        if name == "clients cut off":
            proxy.cut()
        else:
            proxy.impose(DropReply(), times=LOST)
    return name


async def a_round(load: LinearLoad, site: Site, operations: int, strikes: Strikes, *, is_last: bool) -> list[Order]:
    """The orders of about so many operations, while things break."""
    working = asyncio.create_task(load.orders(operations))
    while not working.done():
        due = load.answered + load.chance.randrange(*CALM)
        while load.answered < due and not working.done():
            await asyncio.wait([working], timeout=AFTER_FAULT)
        await strikes()
    orders = await working
    if is_last:  # every process dies, payers pay, and the provider's events reach nobody
        for name in site.ports:
            site.processes.kill(name)
        for order in orders:
            load.at_provider(order, "pay")
        await site.provider.book.wait_for_deliveries()
    await asyncio.to_thread(site.start)
    await asyncio.gather(*(load.last_look(order, verifies=not is_last) for order in orders))
    return orders


@asynccontextmanager
async def a_crew(folder: Path, roles: Sequence[str], previous: Installed | None) -> AsyncIterator[Site]:
    """Workers of their own go through PgBouncer, as the servers beside them."""
    settings = dict(UNLIMITED)
    async with AsyncExitStack() as stack:
        url = direct = stack.enter_context(a_postgres(folder)).url
        if "worker" in roles:
            settings["PAYAGG_PGBOUNCER"] = "1"
            url = await stack.enter_async_context(a_pgbouncer(direct, folder, SERVER_CONNECTIONS))
        yield await stack.enter_async_context(a_site(url, folder, roles, previous, direct=direct, **settings))


async def tried(
    tally: RunSummary, crew: str, operations: int, seed: int, previous: Installed | None = None
) -> Counter[str]:
    """Counts of what was done and found. `previous`: the release of every other process."""
    chance, struck, found = random.Random(seed), Counter[str](), Counter[str]()
    with a_folder("linear") as folder:
        async with a_crew(folder, CREWS[crew], previous) as site, AsyncExitStack() as stack:
            proxies = [await stack.enter_async_context(FaultProxy("127.0.0.1", port)) for port in site.servers]
            clients = [await stack.enter_async_context(a_client(one.port, timeout=PATIENCE)) for one in proxies]
            strangers = [site.shop.as_live, (await opened_shop(site.direct)).as_sandbox]
            load = LinearLoad(site.shop, site.provider, clients, strangers, chance)
            buyer = site.buyer((0, 0))

            async def strikes() -> None:
                struck[await strike(site, folder, proxies, chance)] += 1

            is_last = False
            while not is_last:
                left = operations - LAST - load.made
                is_last = left <= 0
                orders = await a_round(load, site, LAST if is_last else min(ROUND, left), strikes, is_last=is_last)
                refused = list(filter(None, (order.wrong() for order in orders)))
                found["refused"] += len(refused)
                buyer.acknowledged |= {one.key: one.purchase for one in orders}
                buyer.asked = set(buyer.acknowledged)
                wrong = [*load.wrong, *(line for lines in refused for line in lines)]
                if is_last:
                    await site.all_told(END)
                    wrong += site.wrongs(buyer)
                wrong += site.processes.errors() if wrong else []
                load.wrong = []
                told = f"{load.made:,} operations, {len(buyer.asked):,} references, unanswered {dict(load.unknown)}"
                strokes = ", ".join(f"{number} x {name}" for name, number in struck.items())
                tally.line(f"{crew}, seed {seed}: {told}; {strokes}", wrong)
            site.processes.stop_all()
    found.update(operations=load.made, references=len(buyer.asked), unknown=load.unknown.total())
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab linear", description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--crew", choices=CREWS, help="that alone; pooled goes through PgBouncer")
    parser.add_argument("--seed", type=int, help="of the clients and the faults; the machine's timing is not drawn")
    chosen = parser.parse_args(arguments)
    tally, found = RunSummary("linear", arguments), Counter[str]()
    seed = random.SystemRandom().randrange(10_000) if chosen.seed is None else chosen.seed
    crews = [chosen.crew] if chosen.crew else list(CREWS)
    for crew in crews:
        found += asyncio.run(tried(tally, crew, chosen.operations // len(crews), seed))
    figures: dict[str, Any] = {name: found[name] for name in ("operations", "references", "unknown", "refused")}
    is_whole = chosen.operations >= OPERATIONS and chosen.crew is None
    return tally.end(whole=is_whole, **figures)
