"""API keys over the domain: generated, listed, revoked, and what a key stands for."""

from dataclasses import dataclass
from typing import Any

from payagg.domain.api_key import PUBLIC_BYTES, REVOKED_KEYS_LISTED, SECRET_BYTES, SECRET_KEY_NOTE, ApiKey, ApiKeyStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment
from payagg_testing.conformance.domain.world import DomainWorld, environment_of, no_others, view

Body = dict[str, Any]
Reply = tuple[int, Any]


@dataclass(frozen=True)
class KeyRoutes:
    world: DomainWorld

    def context(self, bearer: str | None, body: Body) -> Reply:
        business, key = self.world.admit_server(bearer)
        told = {"businessId": business.id, "businessName": business.name, "environment": key.environment.value}
        return 200, told | {"kycStatus": business.kyc_status.value}

    def list_keys(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        self.world.admit_manager(bearer, business_id).ensure_active()
        return 200, {one.value.lower(): self._group(business_id, one) for one in Environment}

    def generate(self, bearer: str | None, body: Body, business_id: str) -> Reply:
        world = self.world
        business = world.admit_manager(bearer, business_id)
        no_others(body, "environment", "name")
        environment = environment_of(body)
        business.ensure_may_use(environment)
        key, secret = world.rules.api_key.generate(
            id=world.entropy.id("key", world.now()),
            business_id=business_id,
            environment=environment,
            name=body.get("name", ""),
            secret_hex=world.entropy.hex(SECRET_BYTES),
            public_hex=world.entropy.hex(PUBLIC_BYTES),
            now=world.now(),
        )
        if len(world.active_keys(business_id, environment)) >= world.rules.active_keys_max:
            raise Refusal(ErrorCode.KEY_LIMIT_REACHED)
        world.keys[key.id] = key
        shown = view(key, "id", "name", "public_key", "environment", "created_at")
        return 201, shown | {"secretKey": secret, "secretKeyNote": SECRET_KEY_NOTE}

    def revoke(self, bearer: str | None, body: Body, business_id: str, key_id: str) -> Reply:
        self.world.admit_manager(bearer, business_id)
        key = self.world.keys.get(key_id)
        if key is None or key.business_id != business_id:
            raise Refusal(ErrorCode.NOT_FOUND)
        revoked = key.revoke(self.world.now())
        # Written anew, it stands last: listings show the most recently revoked.
        del self.world.keys[key_id]
        self.world.keys[key_id] = revoked
        return 200, {"message": "The key is revoked."}

    def _group(self, business_id: str, environment: Environment) -> list[Body]:
        active = self.world.active_keys(business_id, environment)
        revoked = self.world.keys_with(business_id, environment, ApiKeyStatus.REVOKED)[-REVOKED_KEYS_LISTED:]
        return [_record(key) for key in [*active, *revoked]]


def _record(key: ApiKey) -> Body:
    instants = ("last_used_at", "created_at", "revoked_at")
    return view(key, "id", "name", "public_key", "status", *instants) | {"secretKeyDisplay": key.secret_display}
