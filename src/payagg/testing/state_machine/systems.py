"""The pure domain as a system that a payment machine can drive."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import (
    Attempt,
    ExistingHandOff,
    HandOff,
    HandOffKind,
    after_ask,
    ends_asking,
    ensure_attempts_left,
    next_step,
    payment_reference,
    postpone_ask,
    provider_reference,
)
from payagg.domain.business import Business, BusinessStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, Gateway, GatewayStatus, is_offered, simulator_allowed
from payagg.domain.payment import OUTCOMES, Payment, Status, Transition
from payagg.domain.report import Outcome, ProviderReport, Verdict, judge, judge_silence
from payagg.domain.simulator import elapsed, outcome_of, scenario_of
from payagg.domain.values import Environment
from payagg.domain.webhook import EVENT_FOR, notice_of
from payagg.testing.builders import a_business
from payagg.testing.clocks import ManualClock, SeededEntropy
from payagg.testing.state_machine.model import GATEWAYS
from payagg.testing.state_machine.system import Facts, GatewayFacts

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
    gateways: dict[str, list[Gateway]] = field(default_factory=lambda: {slug: [] for slug in GATEWAYS})

    def __post_init__(self) -> None:
        for slug in GATEWAYS:
            self.move_gateway(slug, "CREATE")
            self.move_gateway(slug, "ENABLE")

    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, time: timedelta) -> None:
        self.clock.move(time)

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        return self.initiated(amount, environment, key)

    def initiate_test(self, amount: int, key: str | None) -> str:
        return self.initiated(amount, Environment.SANDBOX, key, gateway=SANDBOX_SLUG, is_test=True)

    def initiated(self, amount: int, environment: Environment, key: str | None, **fields: Any) -> str:
        now = self.now()
        if key is not None and (environment, key) in self.keys:
            return self.payments[self.keys[environment, key]].replay(now).reference
        if environment is Environment.LIVE and not any(map(self.is_active, GATEWAYS)):
            raise Refusal(ErrorCode.NO_GATEWAY_AVAILABLE)
        payment = Payment.initiate(
            reference=self.entropy.reference(now),
            business_id=BUSINESS,
            environment=environment,
            amount=amount,
            now=now,
            idempotency_key=key,
            **fields,
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

    def move_gateway(self, slug: str, move: str) -> None:
        known, now, living = self.gateways[slug], self.now(), self.living(slug)
        if move == "CREATE":
            if living is not None:
                raise Refusal(ErrorCode.GATEWAY_SLUG_EXISTS)
            created = Gateway.create(id=f"gw_{slug}_{len(known) + 1}", slug=slug, name=slug, now=now)
            known.append(replace(created, credentials=b"sealed"))
        elif living is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        else:
            known[-1] = {"ENABLE": living.enable, "DISABLE": living.disable, "DELETE": living.delete}[move](now)

    def living(self, slug: str) -> Gateway | None:
        known = [g.as_of(self.now()) for g in self.gateways[slug] if g.status is not GatewayStatus.DELETED]
        return known[-1] if known else None

    def is_active(self, slug: str) -> bool:
        living = self.living(slug)
        return living is not None and is_offered(living, None)

    def account(self, attempt: Attempt) -> Gateway | None:
        """The gateway an attempt was made through, whatever became of it; None: the simulator."""
        return next((g for g in self.gateways.get(attempt.gateway, []) if g.id == attempt.gateway_id), None)

    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        slugs = [slug for slug in (*GATEWAYS, SANDBOX_SLUG) if self.may_choose(self.payments[reference], slug)]
        return frozenset((slug, self.business.is_active) for slug in slugs)

    def may_choose(self, payment: Payment, slug: str) -> bool:
        if slug == SANDBOX_SLUG:
            return simulator_allowed(payment.environment)
        return self.is_active(slug) and not payment.is_test

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        payment, now, attempts = self.payments[reference], self.now(), self.attempts[reference]
        scenario = scenario_of(card) if gateway == SANDBOX_SLUG else None
        step = next_step(payment, attempts, gateway, now)
        self.business.ensure_takes_money()
        if isinstance(step, ExistingHandOff):
            return step.hand_off.checkout_url
        if not self.may_choose(payment, gateway):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
        ensure_attempts_left(attempts)
        claim = Attempt.claim(
            payment,
            len(attempts) + 1,
            gateway=gateway,
            gateway_id=self.gateways[gateway][-1].id if scenario is None else None,
            scenario=scenario,
            token=reference,
            now=now,
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
        taken = [a for a in self.attempts[reference] if (a.number, a.gateway) == (number, gateway)]
        signer = self.account(taken[0]) if taken else self.gateways[gateway][-1]
        if signer is not None and not signer.has_credentials:
            raise Refusal(ErrorCode.INVALID_WEBHOOK_SIGNATURE)
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
        self.apply(reference, verdict)
        return verdict.effect.value

    def apply(self, reference: str, verdict: Verdict) -> None:
        for change in verdict.changes:
            self.write(*change)
        if verdict.attempt is not None:
            self.attempts[reference][verdict.attempt.number - 1] = verdict.attempt
        if verdict.anomaly is not None:
            self.note(reference, verdict.anomaly)
            self.tell(reference, verdict.anomaly, verdict.details)

    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> str:
        payment = self.payments[reference]
        attempt = next((attempt for attempt in self.attempts[reference] if attempt.hand_off), None)
        if attempt is not None and not payment.is_final:
            if not self.can_ask(attempt):
                raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
            report = self.answer(attempt, outcome, right_amount)
            if self.judged(report, attempt.gateway, payment.environment, attempt) == "MISMATCH":
                raise Refusal(ErrorCode.PAYMENT_AMOUNT_MISMATCH)
        return self.payments[reference].as_of(self.now()).status.value

    def can_ask(self, attempt: Attempt) -> bool:
        account = self.account(attempt)
        return account is None or account.has_credentials

    def answer(self, attempt: Attempt, outcome: Outcome, right_amount: bool) -> ProviderReport:
        """What the attempt's provider says when asked; the simulator, what its card decided."""
        payment = self.payments[attempt.reference]
        if attempt.scenario is None:
            return a_report(payment, attempt.number, outcome, right_amount)
        outcome, reason = outcome_of(attempt.scenario, elapsed(attempt.handed_off_at, self.now()))
        return replace(a_report(payment, attempt.number, outcome, True), reason=reason)

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
        attempts = [attempt for taken in self.attempts.values() for attempt in taken]
        is_open = {attempt.gateway_id for attempt in attempts if attempt.next_ask_at is not None}
        for known in self.gateways.values():
            known[:] = [g.as_of(self.now()).wiped(self.now(), g.id in is_open) for g in known]

    def reconcile(self, outcome: Outcome, right_amount: bool) -> None:
        for attempt in [attempt for taken in self.attempts.values() for attempt in taken]:
            if attempt.next_ask_at is not None and attempt.next_ask_at <= self.now():
                self.ask(attempt, outcome, right_amount)

    def ask(self, attempt: Attempt, outcome: Outcome, right_amount: bool) -> None:
        attempts, place, now = self.attempts[attempt.reference], attempt.number - 1, self.now()
        postponed = postpone_ask(self.payments[attempt.reference], attempt, now)
        if postponed is not None:
            attempts[place] = postponed
            return
        report = self.answer(attempt, outcome, right_amount) if self.can_ask(attempt) else None
        if report is not None:
            self.judged(report, attempt.gateway, self.payments[attempt.reference].environment, attempt)
        payment, asked = self.payments[attempt.reference], attempts[place]
        attempts[place] = after_ask(payment, asked, now, 0.0)
        if attempts[place].next_ask_at is None:
            self.apply(payment.reference, judge_silence(report, payment, asked, actor="reconciler", now=now))

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

    def gateway_facts(self) -> GatewayFacts:
        living = [gateway for gateway in map(self.living, GATEWAYS) if gateway is not None]
        return GatewayFacts(
            listed=tuple((gateway.slug, gateway.status.value) for gateway in living),
            offered=tuple(gateway.slug for gateway in living if gateway.is_active),
            with_credentials=tuple(
                (slug, number)
                for slug, known in self.gateways.items()
                for number, gateway in enumerate(known, 1)
                if gateway.has_credentials
            ),
        )

    def close(self) -> None:
        """There is nothing to close."""

    def write(self, payment: Payment, transition: Transition | None) -> Payment:
        self.payments[payment.reference] = payment
        if transition is not None:
            self.log.append(transition)
        if ends_asking(payment):
            own = self.attempts[payment.reference]
            own[:] = [replace(attempt, next_ask_at=None) for attempt in own]
        return payment

    def note(self, reference: str, kind: AnomalyKind) -> None:
        self.anomalies[reference].add(kind.value)

    def tell(self, reference: str, kind: AnomalyKind, details: Mapping[str, Any]) -> None:
        notice = notice_of(kind, self.payments[reference])
        if notice is not None and (kind, details) not in self.kept[reference]:
            self.notices[reference].append(notice.value)
        self.kept[reference].append((kind, details))
