"""What each business chooses for its own checkout: which gateways, under which names, in which order."""

from dataclasses import dataclass

from msgspec import UNSET

from payagg.application.ports import Clock, Store, Transaction
from payagg.application.retry import retried
from payagg.application.schemas.gateways import GatewayWithBusinessSettings, ReorderGateways, UpdateBusinessGateway
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import BusinessGateway, Gateway, checkout_order, parse_order


@dataclass(frozen=True)
class CheckoutSettings:
    """Only ACTIVE gateways exist here, and a business that never chose has them all."""

    store: Store
    clock: Clock

    async def listed(self, business_id: str) -> list[GatewayWithBusinessSettings]:
        """The built-in first, then in the business's order."""
        async with self.store.begin() as tx:
            return await self._listed(tx, business_id)

    @retried
    async def update(
        self, business_id: str, gateway_id: str, command: UpdateBusinessGateway
    ) -> GatewayWithBusinessSettings:
        """Raises NOT_FOUND for a gateway that is not ACTIVE, VALIDATION_ERROR for what the built-in forbids."""
        async with self.store.begin() as tx:
            await _lock_business(tx, business_id)
            now = self.clock.now()
            gateway = (await self._active(tx)).get(gateway_id)
            if gateway is None:
                raise Refusal(ErrorCode.NOT_FOUND)
            own = (await tx.gateways.settings(business_id)).get(gateway_id)
            if command == UpdateBusinessGateway():
                return GatewayWithBusinessSettings.of(gateway, own)
            renamed = command.display_name is not UNSET
            changed = (own or BusinessGateway(business_id, gateway_id)).changed(
                gateway,
                now,
                is_enabled=command.is_enabled,
                display_order=command.display_order,
                is_default=command.is_default,
                display_name=None if command.display_name is UNSET else command.display_name,
                rename=renamed,
            )
            await tx.gateways.save_settings(changed)
            return GatewayWithBusinessSettings.of(gateway, changed)

    @retried
    async def reorder(self, business_id: str, command: ReorderGateways) -> list[GatewayWithBusinessSettings]:
        """All of it or nothing; raises VALIDATION_ERROR on `order` for an unknown, inactive or repeated gateway."""
        ids = parse_order([item.gateway_id for item in command.order])
        async with self.store.begin() as tx:
            await _lock_business(tx, business_id)
            now = self.clock.now()
            active = await self._active(tx)
            if not active.keys() >= set(ids):
                raise invalid("order", "Every gateway must be active.")
            settings = await tx.gateways.settings(business_id)
            for item in command.order:
                gateway = active[item.gateway_id]
                if not gateway.is_built_in:
                    own = settings.get(gateway.id, BusinessGateway(business_id, gateway.id))
                    await tx.gateways.save_settings(own.changed(gateway, now, display_order=item.display_order))
            return await self._listed(tx, business_id)

    async def _listed(self, tx: Transaction, business_id: str) -> list[GatewayWithBusinessSettings]:
        settings = await tx.gateways.settings(business_id)
        gateways = (await self._active(tx)).values()
        pairs = sorted(((gateway, settings.get(gateway.id)) for gateway in gateways), key=checkout_order)
        return [GatewayWithBusinessSettings.of(gateway, own) for gateway, own in pairs]

    async def _active(self, tx: Transaction) -> dict[str, Gateway]:
        """By id."""
        now = self.clock.now()
        return {gateway.id: gateway for gateway in await tx.gateways.all() if gateway.as_of(now).is_active}


async def _lock_business(tx: Transaction, business_id: str) -> None:
    """One change of a business's settings at a time: two new defaults at once would meet in the index."""
    business = await tx.businesses.lock(business_id)
    if business is None:
        raise Refusal(ErrorCode.FORBIDDEN)
    business.ensure_active()
