"""The systems a payment machine can drive: the pure domain, and the use cases over any Store."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import (
    Attempt,
    Charge,
    ExistingHandOff,
    HandOff,
    HandOffKind,
    ensure_attempts_left,
    next_step,
    payment_reference,
    provider_reference,
)
from payagg.domain.business import Business, BusinessStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, simulator_allowed
from payagg.domain.payment import OUTCOMES, Payment, Status, Transition
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport, judge
from payagg.domain.simulator import elapsed, outcome_of, scenario_of
from payagg.domain.values import Environment
from payagg.domain.webhook import EVENT_FOR, notice_of
from payagg.testing.builders import a_business
from payagg.testing.clocks import ManualClock, SeededEntropy
from payagg.testing.state_machine.machine import Facts

R = TypeVar("R")
BASE_URL = "https://pay.example"
BUSINESS = "biz_machine"


def a_report(payment: Payment, number: int, outcome: Outcome, right_amount: bool) -> ProviderReport:
    amount = payment.amount if right_amount else payment.amount + 1
    reference = provider_reference(payment.reference, number)
    return ProviderReport(reference, outcome, outcome.value.lower(), frozenset({amount}))


@dataclass
class DomainSystem:
    """The domain alone, with the least that must be remembered around it."""

    clock: ManualClock = field(default_factory=ManualClock)
    entropy: SeededEntropy = field(default_factory=SeededEntropy)
    business: Business = field(default_factory=lambda: a_business(BUSINESS))
    payments: dict[str, Payment] = field(default_factory=dict)
    keys: dict[tuple[Environment, str], str] = field(default_factory=dict)
    log: list[Transition] = field(default_factory=list)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    anomalies: dict[str, set[str]] = field(default_factory=dict)
    kept: dict[str, list[tuple[AnomalyKind, Mapping[str, Any]]]] = field(default_factory=dict)
    notices: dict[str, list[str]] = field(default_factory=dict)

    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, time: timedelta) -> None:
        self.clock.move(time)

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        now = self.now()
        if key is not None and (environment, key) in self.keys:
            return self.payments[self.keys[environment, key]].replay(now).reference
        payment = Payment.initiate(
            reference=self.entropy.reference(now),
            business_id=BUSINESS,
            environment=environment,
            amount=amount,
            now=now,
            idempotency_key=key,
        )
        self.payments[payment.reference] = payment
        self.attempts[payment.reference], self.anomalies[payment.reference] = [], set()
        self.kept[payment.reference], self.notices[payment.reference] = [], []
        if key is not None:
            self.keys[environment, key] = payment.reference
        return payment.reference

    def set_standing(self, is_active: bool) -> None:
        status = BusinessStatus.ACTIVE if is_active else BusinessStatus.SUSPENDED
        self.business = replace(self.business, status=status)

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        payment, now, attempts = self.payments[reference], self.now(), self.attempts[reference]
        scenario = scenario_of(card) if gateway == SANDBOX_SLUG else None
        step = next_step(payment, attempts, gateway, now)
        self.business.ensure_takes_money()
        if isinstance(step, ExistingHandOff):
            return step.hand_off.checkout_url
        if gateway == SANDBOX_SLUG and not simulator_allowed(payment.environment):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
        ensure_attempts_left(attempts)
        claim = Attempt.claim(
            payment, len(attempts) + 1, gateway=gateway, gateway_id=None, scenario=scenario, token=reference, now=now
        )
        if refused:
            attempts.append(claim.refuse())
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
        kind = HandOffKind.SIMULATOR if gateway == SANDBOX_SLUG else HandOffKind.REDIRECT
        hand_off = HandOff(kind, f"{BASE_URL}/{gateway}/{claim.provider_reference}")
        attempts.append(claim.hand_over(hand_off, now, 0.0))
        self.write(*payment.hand_over(gateway, now, "payer"))
        return hand_off.checkout_url

    def report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        report = a_report(self.payments[reference], number, outcome, right_amount)
        return self.judged(report, gateway, environment, None)

    def judged(self, report: ProviderReport, gateway: str, environment: Environment, asked: Attempt | None) -> str:
        reference = payment_reference(report.provider_reference)
        payment = self.payments[reference]
        verdict = judge(
            report,
            payment,
            self.attempts[reference],
            gateway=gateway,
            environment=environment,
            asked=asked,
            paid=[t.reason for t in self.log if t.reference == reference and t.to_status is Status.SUCCESS],
            actor="provider",
            now=self.now(),
        )
        for change in verdict.changes:
            self.write(*change)
        if verdict.attempt is not None:
            self.attempts[reference][verdict.attempt.number - 1] = verdict.attempt
        if verdict.anomaly is not None:
            self.note(reference, verdict.anomaly)
            self.tell(reference, verdict.anomaly, verdict.details)
        return verdict.effect.value

    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> str:
        payment = self.payments[reference]
        attempt = next((attempt for attempt in self.attempts[reference] if attempt.hand_off), None)
        if attempt is not None and not payment.is_final:
            reason = None
            if attempt.scenario is not None:
                outcome, reason = outcome_of(attempt.scenario, elapsed(attempt.handed_off_at, self.now()))
                right_amount = True
            report = replace(a_report(payment, attempt.number, outcome, right_amount), reason=reason)
            if self.judged(report, attempt.gateway, payment.environment, attempt) == "MISMATCH":
                raise Refusal(ErrorCode.PAYMENT_AMOUNT_MISMATCH)
        return self.payments[reference].as_of(self.now()).status.value

    def simulate(self, reference: str, outcome: str) -> None:
        payment = self.payments[reference]
        if not simulator_allowed(payment.environment):
            raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
        payment.as_of(self.now()).ensure_open()
        self.write(*payment.move(OUTCOMES[outcome], self.now(), actor="merchant", reason="SIMULATED"))

    def sweep(self) -> None:
        for payment in self.payments.values():
            if payment.is_expired(self.now()):
                self.write(*payment.expire())

    def facts(self, reference: str) -> Facts:
        transitions = tuple(transition for transition in self.log if transition.reference == reference)
        notices = enumerate(self.notices[reference], len(transitions) + 1)
        events = (*((t.sequence, EVENT_FOR[t.to_status].value) for t in transitions), *notices)
        hand_offs = tuple(a.hand_off.checkout_url for a in self.attempts[reference] if a.hand_off)
        return Facts(
            payment=self.payments[reference].as_of(self.now()),
            transitions=transitions,
            events=events,
            delivered=tuple(number for number, _ in events),
            hand_offs=hand_offs,
            charges=len(hand_offs),
            last_decline=next((a.last_decline for a in self.attempts[reference] if a.last_decline), None),
            anomalies=frozenset(self.anomalies[reference]),
        )

    def close(self) -> None:
        """There is nothing to close."""

    def write(self, payment: Payment, transition: Transition | None) -> Payment:
        self.payments[payment.reference] = payment
        if transition is not None:
            self.log.append(transition)
        return payment

    def note(self, reference: str, kind: AnomalyKind) -> None:
        self.anomalies[reference].add(kind.value)

    def tell(self, reference: str, kind: AnomalyKind, details: Mapping[str, Any]) -> None:
        notice = notice_of(kind, self.payments[reference])
        if notice is not None and (kind, details) not in self.kept[reference]:
            self.notices[reference].append(notice.value)
        self.kept[reference].append((kind, details))


@dataclass
class ScriptedProvider:
    """A processor in memory that does what the next call was told; all of them share one count of charges."""

    slug: str
    charges: Counter[str]
    refuses: bool = False
    starts_alone: bool = False
    says: tuple[Outcome, bool] = (Outcome.PENDING, True)  # and whether the amount is right

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        """Any will do."""

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return True

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return True

    async def start_charge(self, charge: Charge) -> HandOff:
        if self.refuses:
            raise ProviderFault(FaultKind.REJECTED)
        self.charges[payment_reference(charge.reference)] += 1
        return HandOff(HandOffKind.REDIRECT, f"https://{self.slug}.example/{charge.reference}")

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        outcome, right_amount = self.says
        amount = charge.amount if right_amount else charge.amount + 1
        return ProviderReport(charge.reference, outcome, outcome.value.lower(), frozenset({amount}))

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        return False

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        return {}

    def read_event(self, body: bytes) -> ProviderReport | None:
        return None

    def reduced_event(self, body: bytes) -> bytes:
        return body


class NoVault:
    """For stores whose gateways hold no credentials: there is nothing to seal or open."""

    def seal(self, plain: bytes, context: str) -> bytes:
        raise AssertionError("nothing is sealed here")

    def open(self, sealed: bytes, context: str) -> bytes:
        raise AssertionError("nothing is opened here")
