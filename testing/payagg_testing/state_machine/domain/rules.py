"""The domain's rules as one value, so that any of them can be exchanged for somebody else's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from payagg.domain.attempt import Attempt, ExistingHandOff, Start, Wait, next_step
from payagg.domain.business import Business
from payagg.domain.gateway import BusinessGateway, Gateway, ensure_selectable, is_offered, simulator_allowed
from payagg.domain.payment import Payment
from payagg.domain.report import Outcome, Verdict, judge
from payagg.domain.simulator import outcome_of, scenario_of
from payagg.domain.values import Environment


@dataclass(frozen=True)
class DomainRules:
    """What the payment machine tries when it runs over the domain. A tool with a rule of its own, a subclass of
    `Gateway` for example, hands it in here: `DomainRules(gateway=MyGateway)`.
    """

    payment: type[Payment] = Payment
    gateway: type[Gateway] = Gateway
    business: type[Business] = Business
    ensure_selectable: Callable[[Gateway | None, BusinessGateway | None], Gateway] = ensure_selectable
    is_offered: Callable[[Gateway, BusinessGateway | None], bool] = is_offered
    simulator_allowed: Callable[[Environment], bool] = simulator_allowed
    scenario_of: Callable[[str | None], str] = scenario_of
    outcome_of: Callable[..., tuple[Outcome, str | None]] = outcome_of
    next_step: Callable[[Payment, Sequence[Attempt], str | None, datetime], ExistingHandOff | Wait | Start] = next_step
    judge: Callable[..., Verdict] = judge
