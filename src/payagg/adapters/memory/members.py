"""Who manages which business."""

from payagg.adapters.memory.state import BrokenRule, MemoryRepository
from payagg.domain.business import MANAGERS, Business, Role


class MemoryMembers(MemoryRepository):
    async def lock_business(self, business_id: str, subject: str) -> tuple[Business | None, Role | None]:
        return self.state.businesses.get(business_id), self.state.members.get((business_id, subject))

    async def managed_by(self, subject: str) -> list[tuple[Business, Role]]:
        own = [(id, role) for (id, who), role in self.state.members.items() if who == subject and role in MANAGERS]
        return [(self.state.businesses[id], role) for id, role in sorted(own, key=lambda one: one[0])]

    async def of_business(self, business_id: str) -> dict[str, Role]:
        own = {subject: role for (id, subject), role in self.state.members.items() if id == business_id}
        return dict(sorted(own.items()))

    async def add(self, business_id: str, subject: str, role: Role) -> None:
        if business_id not in self.state.businesses:
            raise BrokenRule(f"business {business_id} does not exist")
        self.state.ensure_still(business_id)
        self.state.members[business_id, subject] = role

    async def remove(self, business_id: str, subject: str) -> None:
        self.state.members.pop((business_id, subject), None)
