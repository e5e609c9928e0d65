"""Faults of a Patroni cluster x the routes to it, under load.

Nothing acknowledged may be lost or doubled, no answer false or a 500, no webhook missing, and `payagg doctor` finds no
fault. With --previous one of two servers and one of two workers run the release before this one. Our own part of a gap
is what remains after somebody else, with plain psycopg, could write again.
"""

import argparse
import asyncio
import os
import random
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.failover.cluster import INSIDE, Cluster, a_cluster, run_inside
from lab.failover.prober import Prober
from lab.failover.routes import ROLE, DatabaseRoute, direct, hosts, make_databases, proxies, url
from lab.kit.buyer import FINAL, Buyer, Load, Phase
from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.kit.site import Installed, Site, a_site
from lab.upgrade.release import checked_out, previous_commit

PREVIOUS = "PAYAGG_TEST_HA_PREVIOUS"  # its Python and PYTHONPATH, from the run outside to the one in the network
EVERY = 0.25  # seconds between two payments, however the ones before fare
READ_EVERY = 0.2
RETRY = (1.0, 2.0)  # seconds, as Retry-After bids
WARM_SECONDS = 4.0
SEEN_SECONDS = 3.0  # until a fault shows, and after everything is repaired
PATIENCE = 180.0
RECENT = 1.0
READS_MAX = 400  # requests under way, beyond which nobody reads again
OURS, FROZEN = 1.0, 25.0  # seconds: bars of our own part of a gap, and of the gap behind a frozen leader


@dataclass(frozen=True)
class ClusterFault:
    """Repaired after so many `seconds`; without them, once payments are taken again."""

    word: str  # how the command line calls it
    name: str  # and the table
    strike: Callable[[Cluster], object]
    seconds: float = 0.0


FAULTS = (
    ClusterFault("killed", "leader killed (Patroni and Postgres)", lambda one: one.leader().kill()),
    ClusterFault("off", "leader powered off (packets vanish)", lambda one: one.leader().power_off()),
    ClusterFault("frozen", "leader frozen for 45 s, then woken", lambda one: one.leader().freeze(), 45),
    ClusterFault("postmaster", "postmaster of the leader killed alone", lambda one: one.leader().kill_postmaster()),
    ClusterFault("switchover", "planned switchover", Cluster.switch_over),
    ClusterFault("standby-lost", "standby killed (Patroni and Postgres)", lambda one: one.standby().kill(), 15),
    ClusterFault("standby-frozen", "standby frozen for 45 s, then woken", lambda one: one.standby().freeze(), 45),
    ClusterFault("etcd-one", "one of three etcd lost for 15 s", lambda one: one.lose_etcd(1), 15),
    ClusterFault("etcd-two", "two of three etcd lost for 30 s", lambda one: one.lose_etcd(2), 30),
)


@dataclass
class RouteLoad:
    """Two servers and a worker behind one route, and who buys there under one fault after the other."""

    cluster: Cluster
    route: DatabaseRoute
    site: Site
    buyer: Buyer
    prober: Prober = field(init=False)
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def begin(self, fault: ClusterFault) -> list[Load]:
        self.buyer.phase, self.buyer.writes = Phase(), []
        # Each address by itself: who asks them in turn waits for the one that says nothing.
        places = hosts(self.cluster, self.route)
        self.prober = Prober([f"postgresql://{ROLE}@{host}:{port}/{self.route.database}" for host, port in places])

        async def buy(number: int) -> None:
            await self.buyer.buy(f"{fault.word} {number}", 10_000 + number)

        buying = Load(buy, EVERY)

        async def read(_: int) -> None:
            """What was acknowledged, at random."""
            if self.buyer.purchases and len(buying.under_way) < READS_MAX:
                one = self.chance.choice(self.buyer.purchases[-200:])
                await self.buyer.read(one, again=self.chance.random() < 0.2)

        return [buying, Load(read, READ_EVERY)]

    @property
    def is_writing(self) -> bool:
        return bool(self.buyer.writes) and time.monotonic() - self.buyer.writes[-1] < RECENT

    async def verdict(self) -> "CellVerdict":
        """By the primary itself, past the route. What was acknowledged under the faults before must be there still."""
        paid = {one.reference for one in self.buyer.purchases if one.status == FINAL}
        await eventually(lambda: self.site.merchant.told("payment.success").keys() >= paid)
        began, ended = self.buyer.longest_gap()
        self.site.direct = direct(self.cluster, self.route)  # the primary is another by now
        wrong = await asyncio.to_thread(self.site.wrongs, self.buyer)
        ours = max(0.0, ended - self.prober.recovered(began, ended))
        return CellVerdict(f"{len(self.buyer.writes)} payments, {self.buyer.phase}", ended - began, ours, wrong)


@dataclass
class CellVerdict:
    """What one route showed of one fault. Times are seconds."""

    told: str
    gap: float  # without an acknowledged payment
    ours: float  # of that, after the first write that somebody else could make
    wrong: list[str]


@asynccontextmanager
async def a_route(
    cluster: Cluster, route: DatabaseRoute, folder: Path, previous: Installed | None
) -> AsyncIterator[RouteLoad]:
    own = folder / route.word
    own.mkdir()
    settings = {"PAYAGG_POOL_SIZE": "8"} | ({"PAYAGG_PGBOUNCER": "true"} if route is DatabaseRoute.PGBOUNCER else {})
    roles = ("api", "api", "worker") if previous is None else ("api", "api", "worker", "worker")
    async with a_site(url(cluster, route), own, roles, previous, direct=direct(cluster, route), **settings) as site:
        yield RouteLoad(cluster, route, site, site.buyer(RETRY))


async def eventually(holds: Callable[[], bool]) -> None:
    """Returns after PATIENCE in any case: what did not come is told by the verdict."""
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:  # noqa: ASYNC110 - processes and servers set no event here
        await asyncio.sleep(0.1)


async def struck(cluster: Cluster, loads: Sequence[RouteLoad], fault: ClusterFault) -> list[CellVerdict]:
    """The fault under the load of every route at once; what each shows of it."""
    acting = [one for load in loads for one in load.begin(fault)]
    running = [asyncio.create_task(one.evenly()) for one in acting]
    probing = [asyncio.create_task(load.prober.run()) for load in loads]
    try:
        await asyncio.sleep(WARM_SECONDS)
        await asyncio.to_thread(fault.strike, cluster)
        await asyncio.sleep(max(fault.seconds, SEEN_SECONDS))
        if not fault.seconds:
            await eventually(lambda: all(load.is_writing for load in loads))
        await asyncio.to_thread(cluster.repair)
        await asyncio.sleep(SEEN_SECONDS)
        await eventually(lambda: all(load.is_writing for load in loads))
        for one in acting:
            one.finish()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*running)
    finally:
        for task in (*probing, *running):
            task.cancel()
        await asyncio.gather(*probing, *running, return_exceptions=True)
    return [await load.verdict() for load in loads]


async def run(
    tally: RunSummary,
    cluster: Cluster,
    routes: Sequence[DatabaseRoute],
    faults: Sequence[ClusterFault],
    folder: Path,
    previous: Installed | None,
) -> dict[str, list[CellVerdict]]:
    table: dict[str, list[CellVerdict]] = {}
    async with AsyncExitStack() as stack:
        loads = [await stack.enter_async_context(a_route(cluster, route, folder, previous)) for route in routes]
        for fault in faults:
            table[fault.word] = await struck(cluster, loads, fault)
            for route, verdict in zip(routes, table[fault.word], strict=True):
                gaps = f"gap {verdict.gap:.1f} s, ours {verdict.ours:.1f} s"
                tally.line(f"{fault.name}, {route.value}: {gaps}, {verdict.told}", verdict.wrong)
    return table


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab failover", description=__doc__)
    words, names = [fault.word for fault in FAULTS], [route.word for route in DatabaseRoute]
    parser.add_argument("--only", metavar="FAULT", choices=words, action="append", help=f"one of {', '.join(words)}")
    parser.add_argument("--route", choices=names, action="append", help="one of them, beside no other")
    parser.add_argument("--previous", action="store_true", help="beside the release before this one")
    chosen = parser.parse_args(arguments)
    if INSIDE not in os.environ:
        with a_folder("previous") as place:  # what it needs cannot be fetched from within
            old = checked_out(previous_commit(), place).with_laboratory if chosen.previous else ()
            return run_inside(arguments, **{PREVIOUS: "\n".join(old)})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    python, _, path = os.environ[PREVIOUS].partition("\n")
    previous = (python, path) if chosen.previous else None
    routes = [route for route in DatabaseRoute if route.word in (chosen.route or names)]
    faults = [fault for fault in FAULTS if fault.word in (chosen.only or words)]
    tally = RunSummary("failover", arguments)
    with a_folder("failover") as folder, a_cluster(folder) as cluster, proxies(cluster, folder):
        make_databases(cluster, routes)
        table = asyncio.run(run(tally, cluster, routes, faults, folder, previous))
    ours = max(one.ours for cells in table.values() for one in cells)
    tally.line(f"our own part of a gap: {ours:.1f} s", ["too long"] * (ours >= OURS))
    gaps = {word: round(max(one.gap for one in cells), 1) for word, cells in table.items()}
    frozen = gaps.get("frozen", 0.0)
    tally.line(f"behind a frozen leader: {frozen} s", ["too long"] * (frozen >= FROZEN))
    whole = not chosen.only and not chosen.route
    name = "failover of two releases" if chosen.previous else "failover"
    return tally.end(whole=whole, name=name, ours=round(ours, 1), frozen=frozen, switchover=gaps.get("switchover", 0.0))
