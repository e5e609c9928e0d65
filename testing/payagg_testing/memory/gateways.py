"""Gateways and what businesses chose among them, in memory."""

from dataclasses import replace
from datetime import datetime

from payagg.application.ports.gateways import GatewayChoices, GatewayMerchant
from payagg.domain.business import Business, BusinessStatus
from payagg.domain.business_gateway import BusinessGateway
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg_testing.memory.state import BrokenRule, MemoryRepository


class MemoryGateways(MemoryRepository):
    async def all(self) -> list[Gateway]:
        return sorted(self._living(), key=lambda gateway: (gateway.display_order, gateway.slug))

    async def get(self, gateway_id: str) -> Gateway | None:
        return next((gateway for gateway in self._living() if gateway.id == gateway_id), None)

    lock = get

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


class MemoryGatewayChoices(MemoryRepository):
    async def of_business(self, business_id: str) -> GatewayChoices:
        return GatewayChoices(
            await MemoryGateways(self.state).all(), self._settings(business_id), list(self.state.health.values())
        )

    async def active_businesses(self) -> int:
        return len(self._active())

    async def opt_outs(self, gateway_id: str | None = None) -> dict[str, int]:
        found: dict[str, int] = {}
        for own in self.state.business_gateways.values():
            if own.is_enabled or gateway_id not in (None, own.gateway_id):
                continue
            if self.state.businesses[own.business_id].status is BusinessStatus.ACTIVE:
                found[own.gateway_id] = found.get(own.gateway_id, 0) + 1
        return found

    async def overrides(self, gateway_id: str) -> list[GatewayMerchant]:
        off = [g for g in self.state.business_gateways.values() if g.gateway_id == gateway_id and not g.is_enabled]
        return _by_name([GatewayMerchant(self.state.businesses[own.business_id], own) for own in off])

    async def merchants(
        self, gateway_id: str, search: str | None, offset: int, limit: int
    ) -> tuple[list[GatewayMerchant], int]:
        wanted = (search or "").lower()
        found = [
            GatewayMerchant(business, self.state.business_gateways.get((business.id, gateway_id)))
            for business in self._active()
            if wanted in business.name.lower()
        ]
        return _by_name(found)[offset : offset + limit], len(found)

    def _settings(self, business_id: str) -> dict[str, BusinessGateway]:
        rows = self.state.business_gateways.values()
        return {own.gateway_id: own for own in rows if own.business_id == business_id}

    async def save(self, settings: BusinessGateway) -> None:
        if settings.is_default and not settings.is_enabled:
            raise BrokenRule("a disabled gateway cannot be the default")
        if settings.is_default:
            for own in self._settings(settings.business_id).values():
                if own.is_default and own.gateway_id != settings.gateway_id:
                    cleared = replace(own, is_default=False, updated_at=settings.updated_at)
                    self.state.business_gateways[own.business_id, own.gateway_id] = cleared
        self.state.business_gateways[settings.business_id, settings.gateway_id] = settings

    def _active(self) -> list[Business]:
        return [b for b in self.state.businesses.values() if b.status is BusinessStatus.ACTIVE]


def _by_name(merchants: list[GatewayMerchant]) -> list[GatewayMerchant]:
    return sorted(merchants, key=lambda one: (one.business.name.lower(), one.business.name, one.business.id))
