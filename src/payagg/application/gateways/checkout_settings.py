"""A business's settings for its checkout: which gateways, under which names, in which order."""

from collections.abc import Iterable
from dataclasses import replace

from msgspec import UNSET

from payagg.application.accounts.businesses import lock_own
from payagg.application.ports.store import Transaction
from payagg.application.schemas.gateways import GatewayWithBusinessSettings, ReorderGateways, UpdateBusinessGateway
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.business_gateway import BusinessGateway, checkout_order, parse_order
from payagg.domain.errors import invalid, must_exist
from payagg.domain.gateway import Gateway


class CheckoutSettings(UseCase):
    """Only ACTIVE gateways exist here; a business without settings has them all."""

    async def list_gateways(self, business_id: str) -> list[GatewayWithBusinessSettings]:
        """The built-in first, then in the business's order."""
        async with self.store.begin() as tx:
            return await self._list_gateways(tx, business_id)

    @retry_on_conflict
    async def update(
        self, business_id: str, gateway_id: str, command: UpdateBusinessGateway, *, by: Actor
    ) -> GatewayWithBusinessSettings:
        """Raises NOT_FOUND for a gateway that is not ACTIVE, VALIDATION_ERROR for a change the built-in forbids."""
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_active()
            now = self.clock.now()
            active, settings = await self._choices(tx, business_id)
            gateway = must_exist(active.get(gateway_id))
            own = settings.get(gateway_id) or BusinessGateway(business_id, gateway_id)
            if command == UpdateBusinessGateway():
                return GatewayWithBusinessSettings.of(gateway, own)
            changed = own.with_settings(
                gateway,
                now,
                is_enabled=command.is_enabled,
                display_order=command.display_order,
                is_default=command.is_default,
                display_name=None if command.display_name is UNSET else command.display_name,
                rename=command.display_name is not UNSET,
            )
            await self._save(tx, by, own, changed)
            if changed.is_default:
                await self._record_cleared(tx, by, changed, settings.values())
            return GatewayWithBusinessSettings.of(gateway, changed)

    @retry_on_conflict
    async def reorder(
        self, business_id: str, command: ReorderGateways, *, by: Actor
    ) -> list[GatewayWithBusinessSettings]:
        """Atomic; raises VALIDATION_ERROR on `order` for an unknown, inactive or repeated gateway."""
        ids = parse_order([item.gateway_id for item in command.order])
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_active()
            now = self.clock.now()
            active, settings = await self._choices(tx, business_id)
            for place, gateway_id in enumerate(ids):
                if gateway_id not in active:
                    raise invalid("order", f"Every gateway must be active: order[{place}].gatewayId is not.")
            for item in command.order:
                gateway = active[item.gateway_id]
                if not gateway.is_built_in:
                    own = settings.get(gateway.id) or BusinessGateway(business_id, gateway.id)
                    await self._save(tx, by, own, own.with_settings(gateway, now, display_order=item.display_order))
            return await self._list_gateways(tx, business_id)

    async def _save(self, tx: Transaction, by: Actor, before: BusinessGateway, after: BusinessGateway) -> None:
        await tx.gateway_choices.save(after)
        await self._record(tx, by, before, after)

    async def _record_cleared(
        self, tx: Transaction, by: Actor, default: BusinessGateway, settings: Iterable[BusinessGateway]
    ) -> None:
        """A new default clears the flag of the previous one."""
        for own in settings:
            if own.is_default and own.gateway_id != default.gateway_id:
                await self._record(tx, by, own, replace(own, is_default=False))

    async def _record(self, tx: Transaction, by: Actor, before: BusinessGateway, after: BusinessGateway) -> None:
        changes = changes_of(before, after, "is_enabled", "display_name", "display_order", "is_default")
        owner = after.business_id
        await self.record(tx, by, Action.CHECKOUT_UPDATE, after.gateway_id, changes, business_id=owner)

    async def _list_gateways(self, tx: Transaction, business_id: str) -> list[GatewayWithBusinessSettings]:
        active, settings = await self._choices(tx, business_id)
        chosen = [(one, settings.get(one.id) or BusinessGateway(business_id, one.id)) for one in active.values()]
        return [GatewayWithBusinessSettings.of(gateway, own) for gateway, own in sorted(chosen, key=checkout_order)]

    async def _choices(
        self, tx: Transaction, business_id: str
    ) -> tuple[dict[str, Gateway], dict[str, BusinessGateway]]:
        """Active gateways, and the business's settings, by the gateway's id."""
        found, now = await tx.gateway_choices.of_business(business_id), self.clock.now()
        return {one.id: one for one in found.gateways if one.as_of(now).is_active}, found.settings
