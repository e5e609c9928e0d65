"""Requests to end a payment by hand, in memory."""

from payagg.adapters.memory.state import BrokenRule, MemoryRepository
from payagg.domain.resolution import Resolution

OF_PAYMENT_MAX = 100


class MemoryResolutions(MemoryRepository):
    async def add(self, resolution: Resolution) -> None:
        self.state.resolutions[resolution.id] = resolution

    async def latest(self, reference: str) -> Resolution | None:
        return max(self._own(reference), key=lambda one: one.id, default=None)

    async def of_payment(self, reference: str) -> list[Resolution]:
        return sorted(self._own(reference), key=lambda one: one.id)[:OF_PAYMENT_MAX]

    async def confirm(self, resolution: Resolution) -> None:
        if self.state.resolutions[resolution.id].confirmed_at is not None:
            raise BrokenRule("a request is confirmed once")
        if resolution.confirmed_by == resolution.requested_by:
            raise BrokenRule("who asked does not confirm")
        self.state.resolutions[resolution.id] = resolution

    def _own(self, reference: str) -> list[Resolution]:
        return [one for one in self.state.resolutions.values() if one.reference == reference]
