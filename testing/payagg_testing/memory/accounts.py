"""Businesses, their members and keys, revoked tokens and the audit trail, in memory."""

from collections.abc import Collection

from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.audit import AuditEntry, AuditFilter
from payagg.domain.business import MANAGERS, Business, Role
from payagg.domain.revocation import Revocation
from payagg.domain.values import Environment
from payagg_testing.memory.state import BrokenRule, MemoryRepository


class MemoryBusinesses(MemoryRepository):
    async def get(self, business_id: str) -> Business | None:
        return self.state.businesses.get(business_id)

    lock = get  # transactions are serial, here and in every repository

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        found = self.state.businesses
        return {business_id: found[business_id].name for business_id in business_ids if business_id in found}

    async def add(self, business: Business) -> None:
        if business.id in self.state.businesses:
            raise BrokenRule(f"business {business.id} exists")
        self.state.businesses[business.id] = business

    async def save(self, business: Business) -> None:
        self.state.businesses[business.id] = business

    async def list_businesses(self, search: str | None, after: str | None, limit: int) -> list[Business]:
        found = [b for b in self.state.businesses.values() if search is None or search.lower() in b.name.lower()]
        found.sort(key=lambda business: business.id, reverse=True)
        return [business for business in found if after is None or business.id < after][:limit]


class MemoryApiKeys(MemoryRepository):
    async def get(self, business_id: str, key_id: str) -> ApiKey | None:
        key = self.state.api_keys.get(key_id)
        return key if key is not None and key.business_id == business_id else None

    async def list_keys(self, business_id: str, revoked_max: int) -> list[ApiKey]:
        active, revoked = list[ApiKey](), list[ApiKey]()
        for environment in Environment:
            keys = self._of(business_id, environment)
            keys.sort(key=lambda key: (key.revoked_at or key.created_at, key.id), reverse=True)
            active += [key for key in keys if key.status is ApiKeyStatus.ACTIVE]
            revoked += [key for key in keys if key.status is ApiKeyStatus.REVOKED][:revoked_max]
        return active + revoked

    async def count_active(self, business_id: str, environment: Environment) -> int:
        return sum(key.status is ApiKeyStatus.ACTIVE for key in self._of(business_id, environment))

    async def add(self, key: ApiKey) -> None:
        for other in self.state.api_keys.values():
            if key.id == other.id or key.public_key == other.public_key or key.secret_hash == other.secret_hash:
                raise BrokenRule(f"key {key.id} exists")
        self.state.api_keys[key.id] = key

    async def save(self, key: ApiKey) -> None:
        self.state.api_keys[key.id] = key

    def _of(self, business_id: str, environment: Environment) -> list[ApiKey]:
        keys = self.state.api_keys.values()
        return [key for key in keys if key.business_id == business_id and key.environment is environment]


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
        self.state.members[business_id, subject] = role

    async def remove(self, business_id: str, subject: str) -> None:
        self.state.members.pop((business_id, subject), None)

    async def revoke(self, revocation: Revocation) -> None:
        key = (revocation.claim, revocation.value)
        before = self.state.revocations.get(key, revocation)
        self.state.revocations[key] = max(before, revocation, key=lambda one: one.issued_before)


class MemoryAudit(MemoryRepository):
    async def add(self, entry: AuditEntry) -> None:
        if entry.id in self.state.audit:
            raise BrokenRule(f"entry {entry.id} exists")
        self.state.audit[entry.id] = entry

    async def list_entries(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        found = [entry for entry in self.state.audit.values() if wanted.admits(entry)]
        found.sort(key=lambda entry: entry.id, reverse=True)
        return [entry for entry in found if after is None or entry.id < after][:limit]
