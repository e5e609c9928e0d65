"""The least that must be kept around the domain: rows in dictionaries, and a clock that is told."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from payagg.domain.anomaly import Anomaly
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.gateway import Gateway, ReplacedSecret
from payagg.domain.payment import Payment, Transition
from payagg.domain.values import Environment
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.state_machine.domain.rules import DomainRules


@dataclass
class DomainWorld:
    """The rows of a deployment with one business. All but `replaced`, `originals` and `gateways`, which are by the
    gateway's id, by environment and key, and by id, are by the payment's reference."""

    rules: DomainRules = field(default_factory=DomainRules)
    clock: ManualClock = field(default_factory=ManualClock)
    entropy: SeededEntropy = field(default_factory=SeededEntropy)
    business: Business = field(init=False)
    gateways: dict[str, Gateway] = field(default_factory=dict)  # deleted ones too, in the order of their creation
    replaced: dict[str, tuple[ReplacedSecret, ...]] = field(default_factory=dict)
    payments: dict[str, Payment] = field(default_factory=dict)
    originals: dict[tuple[Environment, str], str] = field(default_factory=dict)
    attempts: defaultdict[str, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    log: defaultdict[str, list[Transition]] = field(default_factory=lambda: defaultdict(list))
    anomalies: defaultdict[str, list[Anomaly]] = field(default_factory=lambda: defaultdict(list))
    notices: defaultdict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.business = Business("biz_1", "Shop", BusinessStatus.ACTIVE, KycStatus.APPROVED, self.now())

    def now(self) -> datetime:
        return self.clock.now()
