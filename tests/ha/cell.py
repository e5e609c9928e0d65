"""One fault under the load of every chosen route at once, and what each route shows of it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.ha.cluster import Cluster
from tests.ha.deployment import ServedRoute
from tests.ha.faults import ClusterFault
from tests.ha.load import FINAL, RouteLoad
from tests.ha.prober import Prober
from tests.ha.routes import DatabaseRoute, hosts

WARM_SECONDS = 4.0
SEEN_SECONDS = 3.0  # until a fault shows, and after everything is repaired
PATIENCE = 180.0
RECENT = 1.0


@dataclass
class CellVerdict:
    """What one route showed of one fault. Times are seconds."""

    acknowledged: int = 0
    payments: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    gap: float = 0.0
    ours: float = 0.0  # from the first write that somebody else could make until the first payment that we acknowledged
    told: int = 0  # payments that the merchant heard of
    doctor: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """What may not be: a failed request may, unless it is a fault of ours."""
        wrong = [*(f"lost: {one}" for one in self.lost), *(f"doubled: {one}" for one in self.doubled)]
        wrong += [f"false: {one}" for one in self.false]
        wrong += [f"{count} x {name}" for name, count in self.failed.items() if name.startswith("500")]
        if self.told != self.payments:
            wrong.append(f"the merchant heard of {self.told} of {self.payments}")
        return [*wrong, *(f"doctor: {one}" for one in self.doctor)]


async def struck(
    cluster: Cluster, deployments: Sequence[ServedRoute], fault: ClusterFault
) -> dict[DatabaseRoute, CellVerdict]:
    loads = [RouteLoad(deployment, fault.word) for deployment in deployments]
    probers = [Prober(probed(cluster, deployment.route)) for deployment in deployments]
    probing = [asyncio.create_task(prober.run()) for prober in probers]
    running = [asyncio.create_task(load.run()) for load in loads]
    try:
        await asyncio.sleep(WARM_SECONDS)
        undo = await asyncio.to_thread(fault.strike, cluster)
        await asyncio.sleep(max(fault.seconds, SEEN_SECONDS))
        if undo is not None:
            await asyncio.to_thread(undo)
            await asyncio.sleep(SEEN_SECONDS)
        await eventually(lambda: all(is_writing(load) for load in loads))
        await asyncio.to_thread(cluster.repair)
        await asyncio.sleep(SEEN_SECONDS)
        await eventually(lambda: all(is_writing(load) for load in loads))
        for load in loads:
            load.finish()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*running)
    finally:
        for task in (*probing, *running):
            task.cancel()
        await asyncio.gather(*probing, *running, return_exceptions=True)
    return {load.deployment.route: await judged(load, prober) for load, prober in zip(loads, probers, strict=True)}


def probed(cluster: Cluster, route: DatabaseRoute) -> list[str]:
    """Each address by itself: who asks them in turn waits for the one that says nothing."""
    return [f"postgresql://payagg@{host}:{port}/{route.database}" for host, port in hosts(cluster, route)]


def is_writing(load: RouteLoad) -> bool:
    return time.monotonic() - load.writes[-1] < RECENT


async def eventually(holds: Callable[[], bool]) -> None:
    """Returns after PATIENCE in any case: what did not come is told by the verdict."""
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:  # noqa: ASYNC110 - processes and servers set no event here
        await asyncio.sleep(0.1)


async def judged(load: RouteLoad, prober: Prober) -> CellVerdict:
    paid = {one.reference for one in load.purchases if one.status == FINAL}
    await eventually(lambda: load.told_the_merchant().keys() >= paid)
    return await asyncio.to_thread(verdict, load, prober)


def verdict(load: RouteLoad, prober: Prober) -> CellVerdict:
    deployment, book, heard = load.deployment, load.deployment.provider.book, load.told_the_merchant()
    stored = {row[0]: row[1] for row in deployment.query("SELECT reference, status FROM payments")}
    found = CellVerdict(
        acknowledged=load.acknowledged, payments=len(load.purchases), failed=load.failed, false=load.false
    )
    for one in load.purchases:
        if one.reference not in stored:
            found.lost.append(f"{one.reference} was initiated and is gone")
        elif one.status == FINAL != stored[one.reference]:
            found.lost.append(f"{one.reference} was paid and is {stored[one.reference]}")
        if book.paid(one.reference) != 1:
            found.doubled.append(f"{one.reference} was charged {book.paid(one.reference)} times")
        if heard[one.reference] > 1:
            found.doubled.append(f"the merchant heard {heard[one.reference]} times of {one.reference}")
    again = deployment.query("SELECT idempotency_key FROM payments GROUP BY 1 HAVING count(*) > 1")
    found.doubled += [f"the key {key} has more than one payment" for (key,) in again]
    found.told = sum(one.reference in heard for one in load.purchases)
    began, ended = load.longest_gap()
    found.gap = ended - began
    found.ours = max(0.0, ended - prober.recovered(began, ended))
    found.doctor = deployment.doctor()
    return found
