"""A business's settings for its checkout: which gateways, under which names, in which order."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from msgspec import UNSET

from payagg.application.accounts.audit import record
from payagg.application.accounts.businesses import lock_own
from payagg.application.ports.outside import Clock, Entropy
from payagg.application.ports.store import Store, Transaction
from payagg.application.retry import retry_on_conflict
from payagg.application.schemas.gateways import GatewayWithBusinessSettings, ReorderGateways, UpdateBusinessGateway
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.errors import invalid, must_exist
from payagg.domain.gateway import BusinessGateway, Gateway, checkout_order, parse_order


@dataclass(frozen=True)
class CheckoutSettings:
    """Only ACTIVE gateways exist here; a business without settings has them all."""

    store: Store
    clock: Clock
    entropy: Entropy

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
            gateway = must_exist((await self._active(tx)).get(gateway_id))
            settings = await tx.gateway_choices.settings(business_id)
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
            active = await self._active(tx)
            for place, gateway_id in enumerate(ids):
                if gateway_id not in active:
                    raise invalid("order", f"Every gateway must be active: order[{place}].gatewayId is not.")
            settings = await tx.gateway_choices.settings(business_id)
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
        business_id, now = after.business_id, self.clock.now()
        await record(
            tx, self.entropy, now, by, Action.CHECKOUT_UPDATE, after.gateway_id, changes, business_id=business_id
        )

    async def _list_gateways(self, tx: Transaction, business_id: str) -> list[GatewayWithBusinessSettings]:
        settings = await tx.gateway_choices.settings(business_id)
        gateways = (await self._active(tx)).values()
        chosen = [(one, settings.get(one.id) or BusinessGateway(business_id, one.id)) for one in gateways]
        return [GatewayWithBusinessSettings.of(gateway, own) for gateway, own in sorted(chosen, key=checkout_order)]

    async def _active(self, tx: Transaction) -> dict[str, Gateway]:
        """By id."""
        now = self.clock.now()
        return {gateway.id: gateway for gateway in await tx.gateways.all() if gateway.as_of(now).is_active}
