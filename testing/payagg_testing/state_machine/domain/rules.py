"""The domain's rules as one value, so that any of them can be exchanged for somebody else's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from payagg.domain.attempt import Attempt, ExistingHandOff, Start, Wait, next_step
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.report import Verdict, judge


@dataclass(frozen=True)
class DomainRules:
    """What the payment machine tries when it runs over the domain. A tool with a rule of its own, a subclass of
    `Gateway` for example, hands it in here: `DomainRules(gateway=MyGateway)`.
    """

    payment: type[Payment] = Payment
    gateway: type[Gateway] = Gateway
    next_step: Callable[[Payment, Sequence[Attempt], str | None, datetime], ExistingHandOff | Wait | Start] = next_step
    judge: Callable[..., Verdict] = judge
