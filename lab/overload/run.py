"""Ten times what one process carries, for a minute, while another business reads; and what it carries ten seconds later."""

import argparse
import asyncio
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from lab.kit.buyer import Buyer, Load, Phase, loaded
from lab.kit.figures import RunSummary
from lab.kit.judgement import stored_in
from lab.kit.places import a_folder, a_postgres
from lab.kit.site import UNLIMITED, a_site, opened_shop
from lab.overload.flood import Flood

TIMES = 10  # the capacity
FEW, MANY = 64, 4_000  # connections
CALM_SECONDS, REST_SECONDS, WHOLE_SECONDS = 8.0, 10.0, 60.0
READ_EVERY, READ_SECONDS = 0.2, 5.0  # another business's pause between two reads, and the longest that one may take
CARRIED = 0.9  # of the capacity, afterwards
KNOWN = 0.5  # of what is stored meanwhile, whose merchants were there to be told: the rest is work for nobody
GROWTH = 150  # MiB of the process: each connection needs some


async def tried(url: str, folder: Path, tally: RunSummary, seconds: float) -> dict[str, Any]:
    """The figures. One core is for the server and Postgres, the other for the load, which is another process."""
    floods, loop = list[Flood](), asyncio.get_running_loop()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        async with a_site(url, folder, **UNLIMITED) as site:
            [(name, port)], shop, other = site.ports.items(), site.shop, await opened_shop(url)
            process = psutil.Process(site.processes.running[name].pid)

            async def flood(what: str, connections: int, seconds: float, rate: float = 0.0) -> float:
                """How many orders were acknowledged in a second."""
                run = Flood(port, shop.sandbox, what).run
                floods.append(one := await loop.run_in_executor(pool, run, connections, seconds, rate))
                answers = ", ".join(f"{number} x {answer}" for answer, number in sorted(one.answers.items()))
                carried = len(one.acknowledged) / seconds
                tally.line(f"{what}: {carried:,.0f} orders acknowledged in a second; {answers}", one.false)
                return carried

            reader = Buyer(site.clients, other.as_sandbox, other.business.id)
            bought = await reader.order("read", 10_000)
            assert bought is not None
            await flood("warm", FEW, CALM_SECONDS)
            capacity = await flood("before", FEW, CALM_SECONDS)
            reader.phase, memory, stored = Phase("others' reads"), process.memory_info().rss, stored_in(url)
            async with loaded(Load(lambda _: reader.read(bought), READ_EVERY)):
                meanwhile = await flood("meanwhile", MANY, seconds, TIMES * capacity) / capacity
            grown, reads = (process.memory_info().rss - memory) >> 20, reader.phase
            known = len(floods[-1].acknowledged) / (stored_in(url) - stored)
            tally.line(f"{meanwhile:.2f} of the capacity, {known:.0%} of it told", ["too little"] * (known < KNOWN))
            tally.line(str(reads), [*reads.failed, *["too late"] * (reads.slowest > READ_SECONDS)])
            tally.line(f"memory: {grown:+d} MiB", ["it grows"] * (grown > GROWTH))
            await asyncio.sleep(REST_SECONDS)
            afterwards = await flood("afterwards", FEW, CALM_SECONDS) / capacity
            tally.line(f"{afterwards:.2f} of the capacity", ["too little"] * (afterwards < CARRIED))
            buyers = [
                Buyer([], shop.as_sandbox, shop.business.id, acknowledged=one.acknowledged, asked=one.asked)
                for one in floods
            ]
            wrong = site.wrongs(reader, *buyers) + site.processes.errors()
            acknowledged = sum(len(one.acknowledged) for one in floods)
            tally.line(f"{acknowledged:,} acknowledged", wrong + ["the server died"] * (not site.processes.lives(name)))
    shares = {"meanwhile": round(meanwhile, 2), "afterwards": round(afterwards, 2), "known": f"{known:.0%}"}
    counts = {"capacity": round(capacity), "acknowledged": acknowledged, "grown": grown}
    return {**counts, **shares, "slowest": round(reads.slowest * 1000)}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=WHOLE_SECONDS, help="of the overload")
    seconds = parser.parse_args(arguments).seconds
    tally = RunSummary("overload", arguments)
    with a_folder("overload") as folder, a_postgres(folder) as postgres:
        found = asyncio.run(tried(postgres.url, folder, tally, seconds))
    return tally.end(whole=seconds >= WHOLE_SECONDS, **found)
