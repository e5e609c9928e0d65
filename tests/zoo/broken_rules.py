"""The domain with one rule written wrongly, as an internal tool might have it; the machines run over the rules alone.

Each docstring names the machine that must notice, and what is wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from payagg.domain.api_key import ApiKey
from payagg.domain.business import Business, Role
from payagg.domain.gateway import BusinessGateway, Gateway, GatewayStatus
from payagg.domain.payment import Payment
from payagg.domain.signing import signed_headers
from payagg.domain.values import Environment
from payagg.domain.webhook import WebhookEndpoint, delay_after
from payagg.testing.conformance.domain import DomainRules, domain_target
from payagg.testing.conformance.target import ConformanceTarget


class ForgetsTheEnd(Payment):
    """payments: A final payment may be moved again."""

    def ensure_open(self) -> None:
        """It always is."""

    @property
    def is_final(self) -> bool:
        return False


class NeverExpires(Payment):
    """payments: The checkout window never closes."""

    def is_expired(self, now: datetime) -> bool:
        return False

    def ensure_processable(self, now: datetime) -> None:
        super().ensure_processable(min(now, self.expires_at - timedelta(seconds=1)))


class ReplaysWhatIsOver(Payment):
    """idempotency: A key of a completed payment answers with that payment."""

    def replay(self, now: datetime) -> Payment:
        return self.as_of(now)


class AcceptsWhatIsRevoked(ApiKey):
    """api-keys: A revoked key is accepted."""

    def ensure_accepted(self) -> None:
        """It is."""


class ServesEveryStanding(Business):
    """api-keys: A business may use LIVE whatever became of its KYC."""

    def ensure_may_use(self, environment: Environment) -> None:
        self.ensure_active()


class SkipsTheDrain(Gateway):
    """gateways: A disabled gateway is off at once."""

    def disable(self, now: datetime, drain: timedelta = timedelta(0)) -> Gateway:
        return super().disable(now, timedelta(microseconds=1)).as_of(now + timedelta(seconds=1))


class DrainsAMinuteLonger(Gateway):
    """gateways: A drain ends a minute late."""

    def as_of(self, now: datetime) -> Gateway:
        return super().as_of(now - timedelta(minutes=1))


class DeletesWhatDrains(Gateway):
    """gateways: What drains may be deleted."""

    def delete(self, now: datetime) -> Gateway:
        is_draining = self.status is GatewayStatus.DRAINING
        drained: Gateway = self.as_of(now + timedelta(hours=1)) if is_draining else self
        return Gateway.delete(drained, now)


class KeepsTheDefault(BusinessGateway):
    """gateways: What is switched off stays the default."""

    def __post_init__(self) -> None:
        """Nothing is checked."""

    def changed(self, gateway: Gateway, now: datetime, **more: Any) -> BusinessGateway:
        changed = super().changed(gateway, now, **more)
        return replace(changed, is_default=self.is_default or changed.is_default)


class HearsEverything(WebhookEndpoint):
    """webhooks: The list of events is not looked at."""

    def receives(self, event_type: Any, environment: Environment) -> bool:
        return self.is_active and self.environment is environment


class HearsBothEnvironments(WebhookEndpoint):
    """webhooks: An endpoint of one environment hears of the other."""

    def receives(self, event_type: Any, environment: Environment) -> bool:
        return super().receives(event_type, self.environment)


class ForgetsTheOldSecret(WebhookEndpoint):
    """webhooks: Once a secret is rotated, the old one signs no more."""

    def signing_secrets(self, now: datetime) -> tuple[bytes, ...]:
        return (self.secret,)


class KeepsTheOldSecret(WebhookEndpoint):
    """webhooks: A rotated secret goes on signing for ever."""

    def signing_secrets(self, now: datetime) -> tuple[bytes, ...]:
        return (self.secret, self.previous_secret) if self.previous_secret else (self.secret,)


def every_member(role: Role | None) -> None:
    """businesses: Whoever has a token manages."""


def everywhere(environment: Environment) -> bool:
    """payments: The simulator completes LIVE payments."""
    return True


def every_card(number: str | None) -> str:
    """payments: A card that is declined is taken for a success."""
    return {"4000000000000119": "no_answer", "4000000000000259": "reversed"}.get(number or "", "success")


def opted_in(gateway: Gateway, settings: BusinessGateway | None) -> bool:
    """gateways: Only what a business switched on is offered to its payers."""
    return gateway.is_active and settings is not None and settings.is_enabled


def selectable(gateway: Gateway | None, settings: BusinessGateway | None) -> Gateway:
    """gateways: What a business switched off may still be asked for."""
    return DomainRules().ensure_selectable(gateway, None)


def tried_once(environment: Environment, attempts: int, chance: float) -> timedelta | None:
    """webhooks: An event that was not taken is given up."""
    return delay_after(environment, attempts, chance) if attempts < 1 else None


def signed_by_the_oldest(keys: Sequence[bytes], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """webhooks: The oldest secret alone signs."""
    return signed_headers(keys[-1:], id, timestamp, body)


def any_credentials(credentials: Mapping[str, str]) -> Mapping[str, str]:
    """gateways: Credentials of any size and kind are stored."""
    return credentials


# By the field of DomainRules that each is handed in as.
RULES: list[tuple[str, Any]] = [
    ("payment", ForgetsTheEnd),
    ("payment", NeverExpires),
    ("simulator_allowed", everywhere),
    ("scenario_of", every_card),
    ("payment", ReplaysWhatIsOver),
    ("api_key", AcceptsWhatIsRevoked),
    ("business", ServesEveryStanding),
    ("ensure_manager", every_member),
    ("gateway", SkipsTheDrain),
    ("gateway", DrainsAMinuteLonger),
    ("gateway", DeletesWhatDrains),
    ("settings", KeepsTheDefault),
    ("is_offered", opted_in),
    ("ensure_selectable", selectable),
    ("parse_credentials", any_credentials),
    ("endpoint", HearsEverything),
    ("endpoint", HearsBothEnvironments),
    ("endpoint", ForgetsTheOldSecret),
    ("endpoint", KeepsTheOldSecret),
    ("delay_after", tried_once),
    ("signed_headers", signed_by_the_oldest),
]


@contextmanager
def rules_target(field: str, rule: Any) -> Iterator[ConformanceTarget]:
    yield domain_target(replace(DomainRules(), **{field: rule}))
