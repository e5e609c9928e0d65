"""Gateways over the domain: what administrators do to them, and what each business makes of them."""

import json
from dataclasses import dataclass, replace
from typing import Any

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, BusinessGateway, Gateway, GatewayStatus, checkout_order
from payagg.domain.values import Environment
from payagg.testing.conformance.domain.world import DomainWorld, instant, no_others

Body = dict[str, Any]
Reply = tuple[int, Any]
BUILT_IN, PROCESSOR = "builtin", "acme-pay"


@dataclass(frozen=True)
class GatewayRoutes:
    world: DomainWorld

    def seed(self) -> None:
        """The built-in gateway, and one with credentials that takes LIVE payments."""
        make, now = self.world.rules.gateway, self.world.now()
        built_in = make.seed(id="gw_builtin", slug=BUILT_IN, name="Built in", now=now)
        processor = make.seed(id="gw_processor", slug=PROCESSOR, name="Acme Pay", now=now).enable(now)
        self._keep(replace(built_in, is_built_in=True, status=GatewayStatus.ACTIVE))
        self._keep(replace(processor, credentials=b"{}"))

    def listed(self, bearer: str | None, body: Body) -> Reply:
        self.world.admit_administrator(bearer)
        return 200, [self._summary(gateway) for gateway in self.living()]

    def create(self, bearer: str | None, body: Body) -> Reply:
        world = self.world
        world.admit_administrator(bearer)
        gateway = world.rules.gateway.create(
            id=world.entropy.id("gw", world.now()),
            slug=body.get("slug", ""),
            name=body.get("name", ""),
            description=body.get("description"),
            display_order=body.get("displayOrder", 0),
            now=world.now(),
        )
        if gateway.slug in {SANDBOX_SLUG, *(one.slug for one in self.living())}:
            raise Refusal(ErrorCode.GATEWAY_SLUG_EXISTS)
        self._keep(gateway)
        return 201, self._summary(gateway)

    def read(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        gateway = self._found(bearer, gateway_id)
        off = [own for own in self.world.settings.values() if own.gateway_id == gateway_id and not own.is_enabled]
        overrides = [{"businessId": own.business_id, "updatedAt": instant(own.updated_at)} for own in off]
        return 200, self._summary(gateway) | {"overrides": overrides}

    def change(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        gateway = self._found(bearer, gateway_id)
        no_others(body, "name", "description", "displayOrder")
        if gateway.is_built_in:
            no_others(body, "displayOrder")
        names = {"name": "name", "description": "description", "displayOrder": "display_order"}
        changes = {names[name]: value for name, value in body.items()}
        return 200, self._summary(self._keep(replace(gateway, **changes, updated_at=self.world.now())))

    def enable(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        return 200, self._summary(self._keep(self._found(bearer, gateway_id).enable(self.world.now())))

    def disable(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        return 200, self._summary(self._keep(self._found(bearer, gateway_id).disable(self.world.now())))

    def delete(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        self._keep(self._found(bearer, gateway_id).delete(self.world.now()))
        return 200, {"message": "The gateway is deleted."}

    def store_credentials(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        gateway = self._found(bearer, gateway_id)
        credentials = self.world.rules.parse_credentials(body.get("credentials", {}))
        self._keep(replace(gateway, credentials=json.dumps(dict(credentials)).encode()))
        return 200, None

    def options(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        pairs = [(one, self.own(business_id, one.id)) for one in self.living() if one.is_active]
        return 200, [_option(gateway, own) for gateway, own in sorted(pairs, key=checkout_order)]

    def choose(self, bearer: str | None, body: Body, business_id: str, gateway_id: str) -> Reply:
        world = self.world
        world.admit_manager(bearer, business_id).ensure_active()
        no_others(body, "isEnabled", "displayOrder", "displayName", "isDefault")
        gateway = next((one for one in self.living() if one.id == gateway_id and one.is_active), None)
        if gateway is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        own = self.own(business_id, gateway_id) or world.rules.settings(business_id, gateway_id)
        chosen = own.changed(
            gateway,
            world.now(),
            is_enabled=body.get("isEnabled"),
            display_order=body.get("displayOrder"),
            is_default=body.get("isDefault"),
            display_name=body.get("displayName"),
            rename="displayName" in body,
        )
        if chosen.is_default:
            for slot, other in list(world.settings.items()):
                if slot[0] == business_id:
                    world.settings[slot] = replace(other, is_default=False)
        world.settings[business_id, gateway_id] = chosen
        return 200, _option(gateway, chosen)

    def own(self, business_id: str, gateway_id: str) -> BusinessGateway | None:
        return self.world.settings.get((business_id, gateway_id))

    def living(self) -> list[Gateway]:
        """As they stand now, those that are deleted left out."""
        seen = [gateway.as_of(self.world.now()) for gateway in self.world.gateways.values()]
        return [gateway for gateway in seen if gateway.status is not GatewayStatus.DELETED]

    def offered(self, business_id: str) -> list[Gateway]:
        is_offered = self.world.rules.is_offered
        return [one for one in self.living() if is_offered(one, self.own(business_id, one.id))]

    def ensure_can_initiate(self, business_id: str, environment: Environment, slug: str | None) -> None:
        """Raises GATEWAY_NOT_FOUND, GATEWAY_DISABLED or NO_GATEWAY_AVAILABLE."""
        rules = self.world.rules
        if slug is not None and not (slug == SANDBOX_SLUG and rules.simulator_allowed(environment)):
            preferred = next((one for one in self.living() if one.slug == slug), None)
            rules.ensure_selectable(preferred, self.own(business_id, preferred.id) if preferred else None)
        usable = [one for one in self.offered(business_id) if one.has_credentials]
        if environment is Environment.LIVE and not usable:
            raise Refusal(ErrorCode.NO_GATEWAY_AVAILABLE)

    def _found(self, bearer: str | None, gateway_id: str) -> Gateway:
        self.world.admit_administrator(bearer)
        found = next((one for one in self.living() if one.id == gateway_id), None)
        if found is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        return found

    def _keep(self, gateway: Gateway) -> Gateway:
        self.world.gateways[gateway.id] = gateway
        return gateway

    def _summary(self, gateway: Gateway) -> Body:
        return {
            "id": gateway.id,
            "slug": gateway.slug,
            "name": gateway.name,
            "description": gateway.description,
            "isActive": gateway.is_active,
            "status": gateway.status.value,
            "isBuiltIn": gateway.is_built_in,
            "displayOrder": gateway.display_order,
            "hasCredentials": gateway.has_credentials,
            "drainStartedAt": instant(gateway.drain_started_at),
            "drainEndsAt": instant(gateway.drain_ends_at),
        }


def _option(gateway: Gateway, own: BusinessGateway | None) -> Body:
    return {
        "id": gateway.id,
        "slug": gateway.slug,
        "name": gateway.name,
        "isBuiltIn": gateway.is_built_in,
        "isEnabled": own is None or own.is_enabled,
        "isDefault": own is not None and own.is_default,
        "displayName": own.display_name if own else None,
        "displayOrder": own.display_order if own and own.display_order is not None else gateway.display_order,
    }
