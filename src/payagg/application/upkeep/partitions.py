"""Creates the partitions of coming weeks and drops those of past ones."""

from dataclasses import dataclass

from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.domain.webhook import RETENTION


@dataclass(frozen=True)
class Partitions:
    store: Store
    clock: Clock
    prefix: str  # of the references that are drawn

    async def keep(self) -> int:
        """The numbers of partitions created and dropped. For the worker; safe in several at once."""
        made = await self.store.make_partitions(self.prefix, self.clock.now())
        return made + await self.store.drop_partitions(self.clock.now() - RETENTION)
