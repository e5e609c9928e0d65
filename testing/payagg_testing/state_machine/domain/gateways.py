"""Gateways over the domain: what administrators do to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from payagg.domain.business_gateway import is_offered
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import PROVES_FOR, SANDBOX_SLUG, Gateway, GatewayStatus, ReplacedSecret, after_rotation
from payagg.domain.values import Environment, parse_slug
from payagg_testing.state_machine.domain.world import DomainWorld

ACCOUNT = "account"  # what lies with a gateway, which also signs: sealing is no rule of the domain


@dataclass
class DomainGateways(DomainWorld):
    """The life of a gateway: from its creation to the last event that its account proves."""

    def create_gateway(self, slug: str, name: str, **fields: Any) -> Gateway:
        now = self.now()
        gateway = self.rules.gateway(self.entropy.id("gw", now), parse_slug(slug), name, now, now, **fields)
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

    def living(self) -> list[Gateway]:
        """As they stand now, those that are deleted left out."""
        now, deleted = self.now(), GatewayStatus.DELETED
        return [gateway.as_of(now) for gateway in self.gateways.values() if gateway.status is not deleted]

    def list_offered(self) -> list[Gateway]:
        return [one for one in self.living() if is_offered(one, None)]

    def ensure_can_initiate(self, environment: Environment) -> None:
        """Raises NO_GATEWAY_AVAILABLE."""
        usable = [one for one in self.list_offered() if one.has_credentials]
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


def _signs(account: str | None) -> dict[Environment, dict[str, str]]:
    return {} if account is None else {one: {ACCOUNT: account} for one in Environment}
