"""Gateways and what businesses chose for them, in memory."""

from datetime import datetime

from payagg.adapters.memory.state import MemoryRepository
from payagg.domain.gateway import Gateway, GatewayStatus


class MemoryGateways(MemoryRepository):
    async def all(self) -> list[Gateway]:
        return sorted(self._living(), key=lambda gateway: (gateway.display_order, gateway.slug))

    async def get(self, gateway_id: str) -> Gateway | None:
        return next((gateway for gateway in self._living() if gateway.id == gateway_id), None)

    async def lock(self, gateway_id: str) -> Gateway | None:
        return await self.get(gateway_id)

    async def by_slug(self, slug: str) -> Gateway | None:
        return next((gateway for gateway in self._living() if gateway.slug == slug), None)

    async def get_any(self, gateway_id: str) -> Gateway | None:
        return self.state.gateways.get(gateway_id)

    async def settling(self, slug: str) -> list[Gateway]:
        deleted = [gateway for gateway in self._deleted_with_secrets() if gateway.slug == slug]
        living = await self.by_slug(slug)
        return [*([living] if living else []), *sorted(deleted, key=lambda g: (g.updated_at, g.id), reverse=True)]

    async def everything(self) -> list[Gateway]:
        return sorted(self.state.gateways.values(), key=lambda gateway: gateway.id)

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        deleted = [g for g in self._deleted_with_secrets() if g.credentials is not None]
        others = [g for g in self.state.gateways.values() if g not in deleted]
        return [*deleted, *(g for g in others if g.replaced_secrets_until and g.replaced_secrets_until <= now)]

    async def add(self, gateway: Gateway) -> bool:
        if gateway.id in self.state.gateways or await self.by_slug(gateway.slug) is not None:
            return False
        self.state.gateways[gateway.id] = gateway
        return True

    async def save(self, gateway: Gateway) -> None:
        self.state.gateways[gateway.id] = gateway

    async def draining(self, now: datetime) -> list[Gateway]:
        return [g for g in self._living() if g.drain_ends_at is not None and g.drain_ends_at <= now]

    def _deleted_with_secrets(self) -> list[Gateway]:
        deleted = [g for g in self.state.gateways.values() if g.status is GatewayStatus.DELETED]
        return [g for g in deleted if g.credentials is not None or g.replaced_secrets is not None]

    def _living(self) -> list[Gateway]:
        return [g for g in self.state.gateways.values() if g.status is not GatewayStatus.DELETED]
