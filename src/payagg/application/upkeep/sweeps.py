"""Work in the background: how often it runs, partitions of coming weeks, and instants of a clock that was ahead."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.retry import in_steps
from payagg.domain.delivery import RETENTION


@dataclass(frozen=True)
class Sweep:
    """Work that runs every `seconds`; with `until_dry` again at once while it finds work."""

    name: str
    seconds: float
    work: Callable[[], Awaitable[int]]
    until_dry: bool = True


@dataclass(frozen=True)
class Partitions:
    store: Store
    clock: Clock
    prefix: str  # of the references that are drawn

    async def keep(self) -> int:
        """The numbers of partitions created and dropped. For the worker; safe in several at once."""
        made = await self.store.make_partitions(self.prefix, self.clock.now())
        return made + await self.store.drop_partitions(self.clock.now() - RETENTION)


_log = structlog.get_logger("payagg.future_instants")


@dataclass(frozen=True)
class FutureInstants:
    store: Store
    clock: Clock

    async def pull_back(self) -> int:
        """Makes checks, deliveries and provider events due now whose instant no rule can have set; how many."""
        pulled = 0
        async for more in in_steps(self.store, lambda tx, after: tx.upkeep.pull_back(self.clock.now(), after)):
            pulled += more
        if pulled:
            _log.warning("the database's clock was ahead: what waited for a wrong date is due now", rows=pulled)
        return pulled
