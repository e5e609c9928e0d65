"""Businesses, their members and their API keys in memory."""

from collections.abc import Collection

from payagg.adapters.memory.state import BrokenRule, MemoryRepository
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.business import Business
from payagg.domain.values import Environment


class MemoryBusinesses(MemoryRepository):
    async def get(self, business_id: str) -> Business | None:
        return self.state.businesses.get(business_id)

    async def lock(self, business_id: str) -> Business | None:
        return self.state.businesses.get(business_id)

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        found = self.state.businesses
        return {business_id: found[business_id].name for business_id in business_ids if business_id in found}

    async def add(self, business: Business) -> None:
        if business.id in self.state.businesses:
            raise BrokenRule(f"business {business.id} exists")
        self.state.businesses[business.id] = business

    async def save(self, business: Business) -> None:
        self.state.ensure_still(business.id)
        self.state.businesses[business.id] = business

    async def count(self) -> int:
        return len(self.state.businesses)

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
        self.state.ensure_still(key.business_id)
        for other in self.state.api_keys.values():
            if key.id == other.id or key.public_key == other.public_key or key.secret_hash == other.secret_hash:
                raise BrokenRule(f"key {key.id} exists")
        self.state.api_keys[key.id] = key

    async def save(self, key: ApiKey) -> None:
        self.state.ensure_still(key.business_id)
        self.state.api_keys[key.id] = key

    def _of(self, business_id: str, environment: Environment) -> list[ApiKey]:
        keys = self.state.api_keys.values()
        return [key for key in keys if key.business_id == business_id and key.environment is environment]
