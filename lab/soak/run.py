"""Kills processes and Postgres at random under load, freezes or starves some, and loads steadily for half an hour."""

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import psycopg

from lab.kit.buyer import Buyer, Load, Purchase, a_client
from lab.kit.figures import RunSummary
from lab.kit.judgement import paid_in
from lab.kit.places import a_folder, a_postgres
from lab.kit.processes import kill_postgres
from lab.kit.site import UNLIMITED, Site, a_site, opened_shop
from lab.soak.hardships import hardships
from payagg.application.payments.status_checks import HOLD
from tests.support.pgbouncer import a_pgbouncer
from tests.support.processes import serving

JOURNEYS = 20  # begun each second
REQUESTS = 5  # of one
WARM_SECONDS = 120.0  # until memory is looked at
LOOK_SECONDS = 10.0
REACHED = 0.95  # of the rate, or the figures are of another load
GROWTH = 0.05


def connections_of(url: str) -> int:
    asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url) as connection:
        return len(connection.execute(asked).fetchall())


async def measured(url: str, seconds: float) -> tuple[Buyer, list[int], list[int]]:
    shop = await opened_shop(url)
    memory: list[int] = []  # bytes of all processes
    connections: list[int] = []
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
                connections.append(await asyncio.to_thread(connections_of, url))
                await asyncio.wait([running], timeout=LOOK_SECONDS)
            await running
    return buyer, memory, connections


def steady(arguments: Sequence[str], minutes: float) -> int:
    tally = RunSummary("soak", arguments)
    with a_folder("steady") as folder, a_postgres(folder) as postgres:
        buyer, memory, connections = asyncio.run(measured(postgres.url, minutes * 60))
    faults = buyer.phase.failed.total()
    requests, growth = buyer.phase.good + faults, memory[-1] / memory[0] - 1
    rate = round(requests / (minutes * 60))
    is_reached = rate >= REACHED * JOURNEYS * REQUESTS
    tally.line(f"rate: {rate} requests a second", [] if is_reached else ["this machine has something else to do"])
    tally.line(f"answers: {buyer.phase}", [*buyer.false, *(f"{n} x {name}" for name, n in buyer.phase.failed.items())])
    held = f"{growth:+.1%} ({memory[-1] >> 20} MiB)"
    tally.line(f"memory: {held}", [] if growth < GROWTH else ["it grows"])
    span = f"{min(connections)} to {max(connections)}"
    tally.line(f"connections: {span}")
    return tally.end(
        whole=is_reached and minutes >= 30, name="soak steady",
        rate=rate, requests=requests, faults=faults, growth=held, connections=span,
    )  # fmt: skip


# What `payagg serve --workers N --no-worker` and `payagg worker` are on several machines, all through one PgBouncer.
CREWS = {
    "one": (("both",), 60),
    "several": (("api",) * 3 + ("worker",) * 2, 1),
    "many": (("api",) * 16 + ("worker",) * 4, 3),
}
SERVER_CONNECTIONS = 20  # that a PgBouncer makes of those of all processes
PAYERS, PAYMENTS, KILLS = 8, 4, 3  # of one round; payments by each payer
RETRY = (0.2, 0.3)  # seconds
END = 2 * HOLD.total_seconds()  # for a round to end; a bound, never an expectation


@asynccontextmanager
async def a_crew(folder: Path, roles: Sequence[str]) -> AsyncIterator[tuple[Site, str]]:
    """The site and the database's own URL; where there are several processes, they go through PgBouncer."""
    with a_postgres(folder) as postgres:
        if len(roles) == 1:
            async with a_site(postgres.url, folder, roles) as site:
                yield site, postgres.url
        else:
            async with (
                a_pgbouncer(postgres.url, folder, SERVER_CONNECTIONS) as url,
                a_site(url, folder, roles, direct=postgres.url, PAYAGG_PGBOUNCER="1") as site,
            ):
                yield site, postgres.url


async def payer(site: Site, buyer: Buyer, name: str, chance: random.Random, late: list[Purchase]) -> None:
    """Buys something a few times. Some pay `late`: when the news can reach nobody."""
    for number in range(PAYMENTS):
        made = await buyer.begin(f"{name} {number}", 10_000 + number)
        assert made is not None  # it asks until it is told
        if chance.random() < 0.3:
            late.append(made)
        else:
            buyer.pay(made)


async def killer(site: Site, folder: Path, chance: random.Random) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0.2, 2.0))
        if chance.random() < 0.5:
            site.processes.kill(chance.choice(list(site.ports)))
            await asyncio.to_thread(site.start)
        else:
            kill_postgres(folder / "state")


async def a_round(site: Site, url: str, folder: Path, buyer: Buyer, seed: int) -> tuple[str, list[str]]:
    """One round: what is told of it, and what does not hold."""
    chance, late, earlier = random.Random(seed), list[Purchase](), len(buyer.purchases)
    payers = [payer(site, buyer, f"{seed} {number}", chance, late) for number in range(PAYERS)]
    await asyncio.gather(*payers, killer(site, folder, chance))
    # The last fault: every process dies, the late payers pay, and the provider's events reach nobody.
    for name in site.ports:
        site.processes.kill(name)
    for one in late:
        buyer.pay(one)
    await site.provider.book.wait_for_deliveries()
    began = time.monotonic()
    await asyncio.to_thread(site.start)
    wanted, settled = {one.reference for one in buyer.purchases}, 0.0
    while time.monotonic() - began < END and not (settled and site.merchant.told("payment.success").keys() >= wanted):
        if not settled and await asyncio.to_thread(paid_in, url) >= wanted:
            settled = time.monotonic() - began
        await asyncio.sleep(RETRY[0])
    wrong = site.wrongs(url, buyer) + [f"{one} is never paid" for one in wanted - paid_in(url)]
    count = len(buyer.purchases) - earlier
    return f"seed {seed}: {count} payments, {len(late)} paid unseen, settled {settled:.1f} s after the restart", wrong


async def kills(tally: RunSummary, crew: str, rounds: int) -> int:
    """How many payments there were."""
    first = random.SystemRandom().randrange(10_000)
    with a_folder("soak") as folder:
        async with a_crew(folder, CREWS[crew][0]) as (site, url):
            buyer = site.buyer(RETRY)
            for seed in range(first, first + rounds):
                told, wrong = await a_round(site, url, folder, buyer, seed)
                wrong += site.processes.errors() if wrong else []
                tally.line(f"{crew}, {told}", wrong)
            for name in list(site.processes.running):
                site.processes.stop(name)
            return len(buyer.purchases)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab soak", description=__doc__)
    parser.add_argument("--only", choices=("kills", "hardships", "steady"))
    parser.add_argument("--crew", choices=CREWS, help="that alone is killed; several and many go through PgBouncer")
    parser.add_argument("--rounds", type=int, help="of kills, for each crew; default: 60, 1 and 3")
    parser.add_argument("--minutes", type=float, default=30.0, help="of the steady load")
    chosen = parser.parse_args(arguments)
    status = 0
    if chosen.only in (None, "kills"):
        tally = RunSummary("soak", arguments)
        crews = [chosen.crew] if chosen.crew else CREWS
        payments = sum(asyncio.run(kills(tally, crew, chosen.rounds or CREWS[crew][1])) for crew in crews)
        whole = chosen.rounds is None and chosen.crew is None
        status |= tally.end(whole=whole, name="soak kills", payments=payments)
    if chosen.only in (None, "hardships"):
        tally = RunSummary("soak", arguments)
        hardships(tally)
        status |= tally.end(whole=True, name="soak hardships")
    if chosen.only in (None, "steady"):
        status |= steady(arguments, chosen.minutes)
    return status
