"""The least that must be cached around the domain: rows in dictionaries, a clock that is told, and who is who."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

from payagg.domain.anomaly import Anomaly
from payagg.domain.api_key import ApiKey, ApiKeyStatus
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import BusinessGateway, Gateway, ReplacedSecret
from payagg.domain.payment import Payment, Transition
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, Event, WebhookEndpoint
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.conformance.domain.rules import DomainRules
from payagg_testing.conformance.inbox import Inbox

ADMIN_TOKEN = "admin-token"  # noqa: S105 - a word that stands for a token: who carries it is no question of the domain
OPEN = ("SANDBOX", "LIVE")


@dataclass
class DomainWorld:
    """One deployment's rows. Tokens are `owner-<number>`, the number of the business in its order."""

    rules: DomainRules = field(default_factory=DomainRules)
    inbox: Inbox = field(default_factory=lambda: Inbox("https://inbox.example"))
    clock: ManualClock = field(default_factory=ManualClock)
    entropy: SeededEntropy = field(default_factory=SeededEntropy)
    businesses: dict[str, Business] = field(default_factory=dict)
    members: dict[tuple[str, str], Role] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    gateways: dict[str, Gateway] = field(default_factory=dict)  # deleted ones too, in the order of their creation
    replaced: dict[str, tuple[ReplacedSecret, ...]] = field(default_factory=dict)  # by the gateway's id
    settings: dict[tuple[str, str], BusinessGateway] = field(default_factory=dict)
    endpoints: dict[str, WebhookEndpoint] = field(default_factory=dict)
    payments: dict[str, Payment] = field(default_factory=dict)
    originals: dict[tuple[str, Environment, str], str] = field(default_factory=dict)
    attempts: defaultdict[str, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    log: defaultdict[str, list[Transition]] = field(default_factory=lambda: defaultdict(list))
    anomalies: defaultdict[str, list[Anomaly]] = field(default_factory=lambda: defaultdict(list))
    notices: defaultdict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    on_move: Callable[[Payment, Transition], None] = lambda payment, transition: None
    deliveries: list[tuple[Event, Delivery]] = field(default_factory=list)

    def now(self) -> datetime:
        return self.clock.now()

    def add_business(self, kyc: KycStatus, status: BusinessStatus) -> tuple[str, str]:
        """Its id and its owner's token."""
        number = len(self.businesses) + 1
        business = self.rules.business(f"biz_{number}", f"Shop {number}", status, kyc, self.now())
        self.businesses[business.id] = business
        self.members[business.id, f"owner-{number}"] = Role.OWNER
        return business.id, f"owner-{number}"

    def active_keys(self, business_id: str, environment: Environment) -> list[ApiKey]:
        return self.keys_with(business_id, environment, ApiKeyStatus.ACTIVE)

    def keys_with(self, business_id: str, environment: Environment, status: ApiKeyStatus) -> list[ApiKey]:
        slot = (business_id, environment, status)
        return [key for key in self.keys.values() if (key.business_id, key.environment, key.status) == slot]

    def admit_administrator(self, bearer: str | None) -> None:
        """Raises UNAUTHORIZED for no token or an unknown one, FORBIDDEN for a merchant's."""
        if self._is_merchant(bearer):
            raise Refusal(ErrorCode.FORBIDDEN)
        if bearer != ADMIN_TOKEN:
            raise Refusal(ErrorCode.UNAUTHORIZED)

    def admit_manager(self, bearer: str | None, business_id: str) -> Business:
        """The business that the bearer manages; raises UNAUTHORIZED or FORBIDDEN."""
        if bearer == ADMIN_TOKEN:
            raise Refusal(ErrorCode.FORBIDDEN)
        if not self._is_merchant(bearer):
            raise Refusal(ErrorCode.UNAUTHORIZED)
        self.rules.ensure_manager(self.members.get((business_id, bearer or "")))
        return self.businesses[business_id]

    def admit_server(self, bearer: str | None) -> tuple[Business, ApiKey]:
        """Whose key it is; raises UNAUTHORIZED, INVALID_API_KEY, BUSINESS_RESTRICTED or KYC_REQUIRED."""
        if bearer is None:
            raise Refusal(ErrorCode.UNAUTHORIZED)
        environment, digest = self.rules.parse_secret(bearer)
        key = next((key for key in self.keys.values() if key.secret_hash == digest), None)
        if key is None:
            raise Refusal(ErrorCode.INVALID_API_KEY)
        key.ensure_accepted()
        business = self.businesses[key.business_id]
        business.ensure_may_use(environment)
        self.keys[key.id] = replace(key, last_used_at=self.now())
        return business, key

    def _is_merchant(self, bearer: str | None) -> bool:
        return any(subject == bearer for _, subject in self.members)


def environment_of(body: dict[str, Any]) -> Environment:
    """Raises VALIDATION_ERROR on `environment`."""
    name = body.get("environment")
    if name not in OPEN:
        raise invalid("environment", "Must be SANDBOX or LIVE.")
    return Environment(name)


def no_others(body: dict[str, Any], *names: str) -> None:
    """Raises VALIDATION_ERROR on the first property that is none of `names`."""
    for name in body:
        if name not in names:
            raise invalid(name, "No such property.")


def view(row: object, *names: str) -> dict[str, Any]:
    """Fields of a row as answers show them: names in camel case, statuses as words, instants as text."""
    shown = {}
    for name in names:
        value, (first, *rest) = getattr(row, name), name.split("_")
        value = value.value if isinstance(value, Enum) else instant(value) if isinstance(value, datetime) else value
        shown[first + "".join(map(str.title, rest))] = value
    return shown


def instant(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
