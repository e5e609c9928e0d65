"""The life of a payment over the domain: what use cases load, ask and keep, with rows in dictionaries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.attempt import (
    VERIFY_FINAL_EVERY,
    Attempt,
    ExistingHandOff,
    HandOff,
    HandOffKind,
    Start,
    after_check,
    ensure_attempts_left,
    payment_reference,
    postpone_check,
)
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, Gateway, simulator_allowed
from payagg.domain.payment import OUTCOMES, SIMULATED, Payment, Status, Transition
from payagg.domain.report import NO_CHARGE, PAID_LATE, Outcome, ProviderReport, Verdict, judge_silence, was_paid
from payagg.domain.simulator import outcome_of, scenario_of, time_since_hand_off
from payagg.domain.values import Environment
from payagg.domain.webhook import EventType, anomaly_event_of, next_sequence
from payagg_testing.state_machine.domain.gateways import DomainGateways
from payagg_testing.state_machine.system import SILENCE, Said

BASE_URL = "https://pay.example"


@dataclass
class DomainPayments(DomainGateways):
    """Providers are asked here by handing in what they say. No report is signed: who may send one is the caller's."""

    def start_payment(self, environment: Environment, amount: int, key: str | None, **fields: Any) -> Payment:
        """A repeated key brings the original."""
        now = self.now()
        payment = self.rules.payment.initiate(
            reference=self.entropy.reference(now),
            business_id=self.business.id,
            idempotency_key=key,
            environment=environment,
            amount=amount,
            now=now,
            **fields,
        )
        if key is not None and (environment, key) in self.originals:
            return self.payments[self.originals[environment, key]].replay(now)
        self.ensure_can_initiate(environment)
        if key is not None:
            self.originals[environment, key] = payment.reference
        self.payments[payment.reference] = payment
        return payment

    def choices(self, payment: Payment) -> dict[str, bool]:
        """The slugs that its payer sees, and whether each can be chosen."""
        takes_money = self.business.takes_money(payment.environment)
        offered = [] if payment.is_test else self.list_offered()
        choices = {one.slug: takes_money and one.has_credentials for one in offered}
        return choices | ({SANDBOX_SLUG: takes_money} if simulator_allowed(payment.environment) else {})

    def may_choose(self, payment: Payment, slug: str) -> bool:
        return self.choices(payment).get(slug, False)

    def start_charge(self, reference: str, slug: str | None, card: str | None, refused: bool = False) -> HandOff:
        """`refused`: by the provider, should it be called."""
        payment, now, attempts = self.payments[reference], self.now(), self.attempts[reference]
        step = self.rules.next_step(payment, attempts, slug, now)
        self.business.ensure_takes_money(payment.environment)
        if isinstance(step, ExistingHandOff):
            return step.hand_off
        assert isinstance(step, Start)
        if not self.may_choose(payment, step.gateway):
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE, field="gatewaySlug")
        ensure_attempts_left(attempts)
        gateway = None if step.gateway == SANDBOX_SLUG else self.newest(step.gateway)
        claim = Attempt.claim(
            payment,
            len(attempts) + 1,
            gateway=step.gateway,
            gateway_id=gateway.id if gateway is not None else None,
            scenario=scenario_of(card) if gateway is None else None,
            token=reference,
            now=now,
            account=self.on_file(gateway) if gateway is not None else None,
        )
        if refused:
            attempts.append(claim.refuse())
            raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
        kind = HandOffKind.SIMULATOR if gateway is None else HandOffKind.REDIRECT
        hand_off = HandOff(kind, f"{BASE_URL}/{step.gateway}/{claim.provider_reference}")
        attempts.append(claim.hand_over(hand_off, now, 0.0))
        self.write(*payment.hand_over(step.gateway, now, "payer"))
        return hand_off

    def complete(self, payment: Payment, outcome: str) -> None:
        """By the simulator."""
        payment.as_of(self.now()).ensure_open()
        self.write(*payment.move(OUTCOMES[outcome], self.now(), actor="merchant", reason=SIMULATED))
        self.tell(payment.reference)

    def hear(self, report: ProviderReport, slug: str, environment: Environment, asked: Attempt | None = None) -> str:
        """What a report does to its payment, in a word of `ReportEffect`."""
        reference = payment_reference(report.provider_reference)
        verdict = self.rules.judge(
            report,
            self.payments[reference],
            self.attempts[reference],
            gateway=slug,
            environment=environment,
            asked=asked,
            paid=[one.reason for one in self.log[reference] if one.to_status in (Status.SUCCESS, Status.REVERSED)],
            actor="provider",
            now=self.now(),
            known=self.anomalies[reference],
        )
        self.apply(reference, verdict)
        if verdict.anomaly in PAID_LATE and report.outcome is Outcome.REVERSED:
            return self.hear(report, slug, environment, asked)  # it was paid, and is back: two facts
        return verdict.effect.value

    def apply(self, reference: str, verdict: Verdict) -> None:
        for change in verdict.changes:
            self.write(*change)
        if verdict.attempt is not None:
            self.attempts[reference][verdict.attempt.number - 1] = verdict.attempt
        if verdict.anomaly is not None:
            self.keep(reference, verdict.anomaly, verdict.details)
        self.tell(reference)

    def look(self, reference: str, said: Said = SILENCE) -> Payment:
        """The payment after asking, for a payer who waits."""
        payment = self.payments[reference]
        attempt = next((attempt for attempt in self.attempts[reference] if attempt.hand_off), None)
        if attempt is not None and not self.is_spared(payment, attempt):
            if not self.can_ask(attempt):
                raise Refusal(ErrorCode.GATEWAY_NOT_AVAILABLE)
            report = self.answer(attempt, said)
            asked = self.attempts[reference][attempt.number - 1] = replace(attempt, last_ask_at=self.now())
            learnt = self.hear(report, asked.gateway, payment.environment, asked)
            if learnt == "MISMATCH" and not payment.is_final:
                raise Refusal(ErrorCode.PAYMENT_AMOUNT_MISMATCH)
        return self.payments[reference].as_of(self.now())

    def is_spared(self, payment: Payment, attempt: Attempt) -> bool:
        """Whether nobody asks about a payment that is final."""
        since = max(filter(None, (attempt.last_ask_at, payment.settled_at)), default=None)
        is_early = since is not None and self.now() < since + VERIFY_FINAL_EVERY
        return payment.is_final and (attempt.gateway == SANDBOX_SLUG or is_early or not self.can_ask(attempt))

    def account(self, attempt: Attempt) -> Gateway | None:
        """The gateway an attempt was made through, whatever became of it; None: the simulator."""
        return self.gateways.get(attempt.gateway_id or "")

    def can_ask(self, attempt: Attempt) -> bool:
        account = self.account(attempt)
        return account is None or account.has_credentials

    def answer(self, attempt: Attempt, said: Said) -> ProviderReport:
        """What the attempt's provider says when asked: `said`, or of another account's charge that it knows none; the
        simulator, what its card decided."""
        reference, amount = attempt.provider_reference, self.payments[attempt.reference].amount
        gateway = self.account(attempt)
        if gateway is not None:
            account = self.on_file(gateway)
            is_ours = account == attempt.account
            no_charge = ProviderReport(reference, Outcome.UNPAID, NO_CHARGE)
            return replace(said.report(reference, amount) if is_ours else no_charge, account=account)
        assert attempt.scenario is not None  # it is the simulator's
        outcome, reason = outcome_of(attempt.scenario, time_since_hand_off(attempt.handed_off_at, self.now()))
        return replace(Said(outcome).report(reference, amount), reason=reason)

    def expire_due(self) -> None:
        for payment in self.payments.values():
            if payment.is_expired(self.now()):
                self.write(*payment.expire())

    def wipe_secrets(self) -> None:
        attempts = [attempt for taken in self.attempts.values() for attempt in taken]
        is_open = {a.gateway_id for a in attempts if a.next_ask_at is not None and a.confirmed_at is None}
        for gateway in self.gateways.values():
            self.keep_gateway(self.wipe(gateway.as_of(self.now()), gateway.id in is_open))

    def reconcile(self, said: Said) -> None:
        for attempt in [attempt for taken in self.attempts.values() for attempt in taken]:
            if attempt.next_ask_at is not None and attempt.next_ask_at <= self.now():
                self.ask(attempt, said)

    def ask(self, attempt: Attempt, said: Said) -> None:
        attempts, place, now = self.attempts[attempt.reference], attempt.number - 1, self.now()
        postponed = postpone_check(self.payments[attempt.reference], attempt, now)
        if postponed is not None:
            attempts[place] = postponed
            return
        report = self.answer(attempt, said) if self.can_ask(attempt) else None
        if report is not None:
            self.hear(report, attempt.gateway, self.payments[attempt.reference].environment, attempt)
        payment, asked = self.payments[attempt.reference], attempts[place]
        attempts[place] = after_check(payment, asked, now, 0.0, is_answered=report is not None)
        if attempts[place].next_ask_at is None:
            self.apply(payment.reference, judge_silence(report, payment, asked, actor="reconciler", now=now))

    def write(self, payment: Payment, transition: Transition | None) -> None:
        self.payments[payment.reference] = payment
        if transition is not None:
            self.log[payment.reference].append(transition)

    def keep(self, reference: str, kind: AnomalyKind, details: Mapping[str, Any]) -> None:
        """Each fact once."""
        known = self.anomalies[reference]
        if not any(fact.is_same_fact(kind, details) for fact in known):
            known.append(Anomaly(f"anm_{len(known):032x}", reference, kind, "event:provider_a", details, self.now()))

    def notice(self, fact: Anomaly, payment: Payment) -> EventType | None:
        return anomaly_event_of(fact, was_paid=was_paid(payment, self.anomalies[payment.reference]))

    def tell(self, reference: str) -> None:
        """Tells each fact once it is news: the late success before what it makes news."""
        known = self.anomalies[reference]
        for position in sorted(range(len(known)), key=lambda place: known[place].kind is not AnomalyKind.LATE_SUCCESS):
            fact, payment = known[position], self.payments[reference]
            notice = self.notice(fact, payment)
            if notice is None or fact.event_sequence is not None:
                continue
            sequence = next_sequence(payment, known)
            known[position] = replace(fact, event_sequence=sequence)
            self.notices[reference].append((sequence, notice.value))
            number = payment.sequence if payment.is_final else sequence
            self.payments[reference] = replace(payment, sequence=number, has_adjustments=True)
