"""Gateways over the domain: what administrators do to them, and what each business makes of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import (
    PROVES_FOR,
    SANDBOX_SLUG,
    BusinessGateway,
    Gateway,
    GatewayStatus,
    ReplacedSecret,
    after_rotation,
    checkout_order,
    parse_order,
)
from payagg.domain.values import Environment
from payagg_testing.conformance.domain.world import DomainWorld, no_others, view

Body = dict[str, Any]
Reply = tuple[int, Any]
BUILT_IN, PROCESSOR = "builtin", "acme-pay"
PAGE_MAX = SEARCH_MAX = 100
ACCOUNT = "account"  # what lies with a gateway, which also signs: sealing is no rule of the domain


@dataclass
class DomainGateways(DomainWorld):
    """The life of a gateway: from its creation to the last event that its account proves."""

    def seed(self) -> None:
        """The built-in gateway, and one with credentials that takes LIVE payments."""
        make, now = self.rules.gateway, self.now()
        built_in = make.seed(id="gw_builtin", slug=BUILT_IN, name="Built in", now=now)
        processor = make.seed(id="gw_processor", slug=PROCESSOR, name="Acme Pay", now=now).enable(now)
        self.keep_gateway(replace(built_in, is_built_in=True, status=GatewayStatus.ACTIVE))
        self.keep_gateway(replace(processor, credentials=b"{}"))

    def create_gateway(self, slug: str, name: str, **fields: Any) -> Gateway:
        now = self.now()
        gateway = self.rules.gateway.create(id=self.entropy.id("gw", now), slug=slug, name=name, now=now, **fields)
        if gateway.slug in {SANDBOX_SLUG, *(one.slug for one in self.living())}:
            raise Refusal(ErrorCode.GATEWAY_SLUG_EXISTS)
        return self.keep_gateway(gateway)

    def keep_gateway(self, gateway: Gateway) -> Gateway:
        self.gateways[gateway.id] = gateway
        return gateway

    def gateway(self, gateway_id: str) -> Gateway:
        """One that lives; raises NOT_FOUND."""
        found = next((one for one in self.living() if one.id == gateway_id), None)
        if found is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        return found

    def own(self, business_id: str, gateway_id: str) -> BusinessGateway | None:
        return self.settings.get((business_id, gateway_id))

    def living(self) -> list[Gateway]:
        """As they stand now, those that are deleted left out."""
        now, deleted = self.now(), GatewayStatus.DELETED
        return [gateway.as_of(now) for gateway in self.gateways.values() if gateway.status is not deleted]

    def list_offered(self, business_id: str) -> list[Gateway]:
        is_offered = self.rules.is_offered
        return [one for one in self.living() if is_offered(one, self.own(business_id, one.id))]

    def businesses_using(self, gateway: Gateway) -> list[str]:
        """Active ones that did not opt out."""
        active = [id for id, business in self.businesses.items() if business.is_active]
        return [id for id in active if (own := self.own(id, gateway.id)) is None or own.is_enabled]

    def ensure_can_initiate(self, business_id: str, environment: Environment, slug: str | None) -> None:
        """Raises GATEWAY_NOT_FOUND, GATEWAY_DISABLED or NO_GATEWAY_AVAILABLE."""
        rules = self.rules
        if slug is not None and not (slug == SANDBOX_SLUG and rules.simulator_allowed(environment)):
            preferred = next((one for one in self.living() if one.slug == slug), None)
            rules.ensure_selectable(preferred, self.own(business_id, preferred.id) if preferred else None)
        usable = [one for one in self.list_offered(business_id) if one.has_credentials]
        if environment is Environment.LIVE and not usable:
            raise Refusal(ErrorCode.NO_GATEWAY_AVAILABLE)

    def newest(self, slug: str) -> Gateway:
        """Of the slug's gateways, whatever became of it."""
        return [gateway for gateway in self.gateways.values() if gateway.slug == slug][-1]

    def on_file(self, gateway: Gateway) -> str | None:
        """Its account."""
        return None if gateway.credentials is None else gateway.credentials.decode()

    def rotate(self, gateway: Gateway, account: str) -> Gateway:
        """With another account: what the one before signed still proves events for a while."""
        now, before, after = self.now(), _signs(self.on_file(gateway)), _signs(account)
        self.replaced[gateway.id] = after_rotation(self.replaced.get(gateway.id, ()), before, after, now)
        return self.keep_gateway(replace(gateway, credentials=account.encode(), updated_at=now))

    def wipe(self, gateway: Gateway, has_open_attempts: bool) -> Gateway:
        """Without the secrets that have served; what a deleted gateway signs with proves events for PROVES_FOR."""
        changed = gateway.without_secrets(self.now(), has_open_attempts)
        if gateway.has_credentials and not changed.has_credentials:
            until = gateway.updated_at + PROVES_FOR
            proven = dict.fromkeys(self.proving(gateway))
            self.replaced[gateway.id] = tuple(
                ReplacedSecret(one, {ACCOUNT: account}, until) for account in proven for one in Environment
            )
        return changed

    def proving(self, gateway: Gateway) -> Sequence[str]:
        """The accounts whose signatures are believed now, the newest first."""
        account, replaced, now = self.on_file(gateway), self.replaced.get(gateway.id, ()), self.now()
        older = [one.credentials[ACCOUNT] for one in replaced if now < one.valid_until]
        return older if account is None else [account, *older]


@dataclass(frozen=True)
class Page:
    """The rows of a list, and its `meta`."""

    rows: list[Body]
    meta: Body


def _signs(account: str | None) -> dict[Environment, dict[str, str]]:
    return {} if account is None else {one: {ACCOUNT: account} for one in Environment}


@dataclass(frozen=True)
class GatewayRoutes:
    world: DomainGateways

    def list_gateways(self, bearer: str | None, body: Body) -> Reply:
        self.world.admit_administrator(bearer)
        return 200, [self._summary(gateway) for gateway in self.world.living()]

    def create(self, bearer: str | None, body: Body) -> Reply:
        self.world.admit_administrator(bearer)
        more = {"description": body.get("description"), "display_order": body.get("displayOrder", 0)}
        return 201, self._summary(self.world.create_gateway(body.get("slug", ""), body.get("name", ""), **more))

    def read(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        gateway = self._find(bearer, gateway_id)
        off = [own for own in self.world.settings.values() if own.gateway_id == gateway_id and not own.is_enabled]
        names = self.world.businesses
        overrides = [
            view(own, "business_id", "updated_at") | {"businessName": names[own.business_id].name} for own in off
        ]
        return 200, self._summary(gateway) | {"overrides": overrides}

    def merchants(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        """The active businesses, on one page."""
        self._find(bearer, gateway_id)
        size = _integer(body, "perPage", 20)
        if _integer(body, "page", 1) < 1 or not 1 <= size <= PAGE_MAX or len(body.get("search", "")) > SEARCH_MAX:
            raise invalid("page", "There is no such page.")
        active = [business for business in self.world.businesses.values() if business.is_active]
        owns = [self.world.own(business.id, gateway_id) for business in active]
        rows = [
            {"businessId": business.id, "businessName": business.name, "isEnabled": own is None or own.is_enabled}
            for business, own in zip(active, owns, strict=True)
        ]
        return 200, Page(rows, {"page": 1, "perPage": size, "total": len(rows)})

    def change(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        gateway = self._find(bearer, gateway_id)
        no_others(body, "name", "description", "displayOrder")
        if gateway.is_built_in:
            no_others(body, "displayOrder")
        names = {"name": "name", "description": "description", "displayOrder": "display_order"}
        changes = {names[name]: value for name, value in body.items()}
        return 200, self._summary(self.world.keep_gateway(replace(gateway, **changes, updated_at=self.world.now())))

    def enable(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        return 200, self._summary(self.world.keep_gateway(self._find(bearer, gateway_id).enable(self.world.now())))

    def disable(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        return 200, self._summary(self.world.keep_gateway(self._find(bearer, gateway_id).disable(self.world.now())))

    def delete(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        self.world.keep_gateway(self._find(bearer, gateway_id).delete(self.world.now()))
        return 200, {"message": "The gateway is deleted."}

    def store_credentials(self, bearer: str | None, body: Body, gateway_id: str) -> Reply:
        gateway = self._find(bearer, gateway_id)
        credentials = self.world.rules.parse_credentials(body.get("credentials", {}))
        self.world.rotate(gateway, json.dumps(dict(credentials)))
        return 200, None

    def options(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        pairs = [(one, self.world.own(business_id, one.id)) for one in self.world.living() if one.is_active]
        return 200, [_option(gateway, own) for gateway, own in sorted(pairs, key=checkout_order)]

    def choose(self, bearer: str | None, body: Body, business_id: str, gateway_id: str) -> Reply:
        world = self.world
        world.admit_manager(bearer, business_id).ensure_active()
        no_others(body, "isEnabled", "displayOrder", "displayName", "isDefault")
        gateway = next((one for one in self.world.living() if one.id == gateway_id and one.is_active), None)
        if gateway is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        own = self.world.own(business_id, gateway_id) or world.rules.settings(business_id, gateway_id)
        chosen = own.with_settings(
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

    def reorder(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        world = self.world
        world.admit_manager(bearer, business_id).ensure_active()
        active = {one.id: one for one in world.living() if one.is_active}
        order = body.get("order", [])
        if any({"gatewayId", "displayOrder"} > item.keys() for item in order):
            raise invalid("order", "Every item needs both properties.")
        wanted = {item["gatewayId"]: item["displayOrder"] for item in order}
        if not active.keys() >= set(parse_order([item["gatewayId"] for item in order])):
            raise invalid("order", "Every gateway must be active.")
        for id, order in wanted.items():
            if not active[id].is_built_in:
                own = world.own(business_id, id) or world.rules.settings(business_id, id)
                world.settings[business_id, id] = own.with_settings(active[id], world.now(), display_order=order)
        return self.options(bearer, body, business_id)

    def _summary(self, gateway: Gateway) -> Body:
        return _view(gateway) | {"businessCount": len(self.world.businesses_using(gateway))}

    def _find(self, bearer: str | None, gateway_id: str) -> Gateway:
        self.world.admit_administrator(bearer)
        return self.world.gateway(gateway_id)


def _integer(body: Body, name: str, default: int) -> int:
    """An integer of a query; raises VALIDATION_ERROR."""
    text = str(body.get(name, default))
    if not text.isdecimal():
        raise invalid(name, "Must be an integer.")
    return int(text)


def _view(gateway: Gateway) -> Body:
    own = ("id", "slug", "name", "description", "is_active", "status", "is_built_in", "display_order")
    return view(gateway, *own, "has_credentials", "drain_started_at", "drain_ends_at")


def _option(gateway: Gateway, own: BusinessGateway | None) -> Body:
    return view(gateway, "id", "slug", "name", "is_built_in", "display_order") | {
        "isEnabled": own is None or own.is_enabled,
        "isDefault": own is not None and own.is_default,
        "displayName": own.display_name if own else None,
        "businessDisplayOrder": own.display_order if own else None,
    }
