"""The domain's rules as one value, so that any of them can be exchanged for somebody else's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.domain.api_key import ACTIVE_KEYS_MAX, ApiKey, parse_secret
from payagg.domain.attempt import Attempt, ExistingHandOff, Start, Wait, next_step
from payagg.domain.business import Business, Role, ensure_manager
from payagg.domain.gateway import (
    BusinessGateway,
    Gateway,
    ensure_selectable,
    is_offered,
    parse_credentials,
    simulator_allowed,
)
from payagg.domain.payment import Payment
from payagg.domain.report import Outcome, Verdict, judge
from payagg.domain.signing import signed_headers
from payagg.domain.simulator import outcome_of, scenario_of
from payagg.domain.values import Environment
from payagg.domain.webhook import ACTIVE_ENDPOINTS_MAX, WebhookEndpoint, delay_after


@dataclass(frozen=True)
class DomainRules:
    """What the machines try when they run over the domain. A tool with a rule of its own, a subclass of `Gateway` for
    example, hands it in here: `DomainRules(gateway=MyGateway)`.
    """

    payment: type[Payment] = Payment
    gateway: type[Gateway] = Gateway
    settings: type[BusinessGateway] = BusinessGateway
    api_key: type[ApiKey] = ApiKey
    business: type[Business] = Business
    endpoint: type[WebhookEndpoint] = WebhookEndpoint
    active_keys_max: int = ACTIVE_KEYS_MAX
    active_endpoints_max: int = ACTIVE_ENDPOINTS_MAX
    parse_secret: Callable[[str], tuple[Environment, bytes]] = parse_secret
    parse_credentials: Callable[[Mapping[str, str]], Mapping[str, str]] = parse_credentials
    ensure_manager: Callable[[Role | None], None] = ensure_manager
    ensure_selectable: Callable[[Gateway | None, BusinessGateway | None], Gateway] = ensure_selectable
    is_offered: Callable[[Gateway, BusinessGateway | None], bool] = is_offered
    simulator_allowed: Callable[[Environment], bool] = simulator_allowed
    scenario_of: Callable[[str | None], str] = scenario_of
    outcome_of: Callable[..., tuple[Outcome, str | None]] = outcome_of
    next_step: Callable[[Payment, Sequence[Attempt], str | None, datetime], ExistingHandOff | Wait | Start] = next_step
    judge: Callable[..., Verdict] = judge
    delay_after: Callable[[Environment, int, float], timedelta | None] = delay_after
    signed_headers: Callable[[Sequence[bytes], str, int, bytes], dict[str, str]] = signed_headers
