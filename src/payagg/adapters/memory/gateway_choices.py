"""What businesses chose among the gateways."""

from dataclasses import replace

from payagg.adapters.memory.gateways import MemoryGateways
from payagg.adapters.memory.state import BrokenRule, MemoryRepository
from payagg.application.ports.gateways import GatewayChoices, GatewayMerchant
from payagg.domain.business import Business, BusinessStatus
from payagg.domain.gateway import BusinessGateway


class MemoryGatewayChoices(MemoryRepository):
    async def of_business(self, business_id: str) -> GatewayChoices:
        return GatewayChoices(
            await MemoryGateways(self.state).all(), await self.settings(business_id), list(self.state.health.values())
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

    async def settings(self, business_id: str) -> dict[str, BusinessGateway]:
        rows = self.state.business_gateways.values()
        return {own.gateway_id: own for own in rows if own.business_id == business_id}

    async def save(self, settings: BusinessGateway) -> None:
        self.state.ensure_still(settings.business_id)
        if settings.is_default and not settings.is_enabled:
            raise BrokenRule("a disabled gateway cannot be the default")
        if settings.is_default:
            for own in (await self.settings(settings.business_id)).values():
                if own.is_default and own.gateway_id != settings.gateway_id:
                    cleared = replace(own, is_default=False, updated_at=settings.updated_at)
                    self.state.business_gateways[own.business_id, own.gateway_id] = cleared
        self.state.business_gateways[settings.business_id, settings.gateway_id] = settings

    def _active(self) -> list[Business]:
        return [b for b in self.state.businesses.values() if b.status is BusinessStatus.ACTIVE]


def _by_name(merchants: list[GatewayMerchant]) -> list[GatewayMerchant]:
    return sorted(merchants, key=lambda merchant: (merchant.business.name, merchant.business.id))
