"""One fault under the load of every chosen route at once, and what each route shows of it."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.failover.cluster import Cluster
from lab.failover.faults import ClusterFault
from lab.failover.prober import Prober
from lab.failover.routes import ROLE, DatabaseRoute, direct, hosts, url
from lab.kit.buyer import FINAL, Buyer, Load
from lab.kit.site import Site, a_site

EVERY = 0.25  # seconds between two payments, however the ones before fare
READ_EVERY = 0.2
RETRY = (1.0, 2.0)  # seconds, as Retry-After bids
WARM_SECONDS = 4.0
SEEN_SECONDS = 3.0  # until a fault shows, and after everything is repaired
PATIENCE = 180.0
RECENT = 1.0
READS_MAX = 400  # requests under way, beyond which nobody reads again


@dataclass
class RouteLoad:
    """Two servers and a worker behind one route, and who buys there."""

    cluster: Cluster
    route: DatabaseRoute
    site: Site
    buyer: Buyer = field(init=False)
    earlier: list[Buyer] = field(default_factory=list)  # who bought under the faults before
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def begin(self, fault: ClusterFault) -> "list[Load]":
        self.buyer = self.site.buyer(RETRY)

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


@dataclass
class CellVerdict:
    """What one route showed of one fault. Times are seconds."""

    told: str
    gap: float  # without an acknowledged payment
    ours: float  # of that, after the first write that somebody else could make
    wrong: list[str]


@asynccontextmanager
async def a_route(cluster: Cluster, route: DatabaseRoute, folder: Path) -> AsyncIterator[RouteLoad]:
    own = folder / route.word
    own.mkdir()
    settings = {"PAYAGG_POOL_SIZE": "8"} | ({"PAYAGG_PGBOUNCER": "true"} if route is DatabaseRoute.PGBOUNCER else {})
    roles = ("api", "api", "worker")
    async with a_site(url(cluster, route), own, roles, direct=direct(cluster, route), **settings) as site:
        yield RouteLoad(cluster, route, site)


async def struck(cluster: Cluster, loads: Sequence[RouteLoad], fault: ClusterFault) -> dict[DatabaseRoute, CellVerdict]:
    probers = [Prober(probed(cluster, load.route)) for load in loads]
    probing = [asyncio.create_task(prober.run()) for prober in probers]
    acting = [one for load in loads for one in load.begin(fault)]
    running = [asyncio.create_task(one.evenly()) for one in acting]
    try:
        await asyncio.sleep(WARM_SECONDS)
        undo = await asyncio.to_thread(fault.strike, cluster)
        await asyncio.sleep(max(fault.seconds, SEEN_SECONDS))
        if undo is not None:
            await asyncio.to_thread(undo)
            await asyncio.sleep(SEEN_SECONDS)
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
    return {load.route: await judged(load, prober) for load, prober in zip(loads, probers, strict=True)}


def probed(cluster: Cluster, route: DatabaseRoute) -> list[str]:
    """Each address by itself: who asks them in turn waits for the one that says nothing."""
    return [f"postgresql://{ROLE}@{host}:{port}/{route.database}" for host, port in hosts(cluster, route)]


async def eventually(holds: Callable[[], bool]) -> None:
    """Returns after PATIENCE in any case: what did not come is told by the verdict."""
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:  # noqa: ASYNC110 - processes and servers set no event here
        await asyncio.sleep(0.1)


async def judged(load: RouteLoad, prober: Prober) -> CellVerdict:
    paid = {one.reference for one in load.buyer.purchases if one.status == FINAL}
    await eventually(lambda: load.site.merchant.told("payment.success").keys() >= paid)
    return await asyncio.to_thread(verdict, load, prober)


def verdict(load: RouteLoad, prober: Prober) -> CellVerdict:
    """By the primary itself, past the route. What was acknowledged under the faults before must be there still."""
    began, ended = load.buyer.longest_gap()
    wrong = load.site.wrongs(direct(load.cluster, load.route), *load.earlier, load.buyer)
    load.earlier.append(load.buyer)
    ours = max(0.0, ended - prober.recovered(began, ended))
    return CellVerdict(f"{len(load.buyer.purchases)} payments, {load.buyer.phase}", ended - began, ours, wrong)
