"""Work in the background: how often it runs, partitions of coming weeks, and instants of a clock that was ahead."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.use_case import in_steps
from payagg.domain.delivery import RETENTION

_log = structlog.get_logger("payagg.future_instants")


@dataclass(frozen=True)
class Sweep:
    """Work that runs every `seconds`; with `until_dry` again at once while it finds work."""

    name: str
    seconds: float
    work: Callable[[], Awaitable[int]]
    until_dry: bool = True


async def keep_partitions(store: Store, clock: Clock, prefix: str) -> int:
    """How many partitions it made, for references that are drawn with this prefix, and dropped. For the worker; safe in
    several at once."""
    made = await store.make_partitions(prefix, clock.now())
    return made + await store.drop_partitions(clock.now() - RETENTION)


async def pull_back_instants(store: Store, clock: Clock) -> int:
    """Makes checks, deliveries and provider events due now whose instant no rule can have set; how many."""
    pulled = 0
    async for more in in_steps(store, lambda tx, after: tx.upkeep.pull_back(clock.now(), after)):
        pulled += more
    if pulled:
        _log.warning("the database's clock was ahead: what waited for a wrong date is due now", rows=pulled)
    return pulled
