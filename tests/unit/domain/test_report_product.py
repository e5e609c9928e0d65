"""`judge` on every combination of what decides: none moves without exact evidence, and no money is silent."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple

import pytest
from payagg_testing.builders import HOUR, LIVE, NOW, REFERENCE, SANDBOX, a_payment, a_report, an_attempt

from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import Attempt, AttemptState
from payagg.domain.payment import SIMULATED, Payment, Status
from payagg.domain.report import Outcome, ProviderReport, ReportEffect, Verdict, judge
from payagg.domain.values import Environment

REACHES = {Outcome.SUCCEEDED: Status.SUCCESS, Outcome.FAILED: Status.FAILED, Outcome.REVERSED: Status.REVERSED}
WORDS = [*((outcome, True) for outcome in Outcome), (Outcome.PENDING, False)]
IN_TIME: list[tuple[Payment | None, datetime]] = [(None, NOW), *((a_payment(status), NOW) for status in Status)]
PAYMENTS = [*IN_TIME, (a_payment(), NOW + HOUR), (a_payment(Status.PENDING), NOW + HOUR)]
ATTEMPTS = [*((state, "provider_a") for state in (None, *AttemptState)), (AttemptState.HANDED_OFF, "other")]
ENVIRONMENTS = [(None, SANDBOX), (SANDBOX, SANDBOX), (LIVE, SANDBOX), (None, LIVE)]  # in the body, and of the route
ASKED = ["nobody", "it", "another", "another account"]
AMOUNTS = [frozenset({150_000}), frozenset({1}), frozenset({150_001}), frozenset[int]()]
CURRENCIES = ["NGN", "ngn", ""]
PAID: list[list[str | None]] = [[], [REFERENCE], [f"{REFERENCE}.2"], [SIMULATED]]


class Case(NamedTuple):
    word: tuple[Outcome, bool]
    payment: tuple[Payment | None, datetime]
    attempt: tuple[AttemptState | None, str]
    environment: tuple[Environment | None, Environment]
    asked: str
    amounts: frozenset[int]
    currency: str
    paid: list[str | None]

    @property
    def is_exact(self) -> bool:
        """Whether each fact is the payment's; a failure may leave out currency and amount."""
        is_failure = self.word[0] is Outcome.FAILED
        is_amount = self.amounts == frozenset({150_000}) or (is_failure and not self.amounts)
        is_currency = self.currency == "NGN" or (is_failure and not self.currency)
        return is_amount and is_currency and LIVE not in self.environment

    @property
    def is_ours(self) -> bool:
        """Whether it is about an attempt of the payment at the gateway that speaks, and answers what was asked."""
        return self.attempt[0] is not None and self.attempt[1] == "provider_a" and self.asked != "another"

    @property
    def is_open(self) -> bool:
        payment, now = self.payment
        return payment is not None and not payment.as_of(now).is_final

    @property
    def must_move(self) -> bool:
        """By an exact report of an end, about our attempt. Only whom we sent there can fail the payment: by a signed
        event, or by an answer from its account once its hour is over."""
        outcome = self.word[0]
        if not (outcome in REACHES and self.is_exact and self.is_ours and self.is_open):
            return False
        is_over = self.payment[1] != NOW
        is_failed = self.asked == "nobody" or (self.asked == "it" and is_over)
        return outcome is not Outcome.FAILED or (is_failed and self.attempt[0] is AttemptState.HANDED_OFF)

    @property
    def may_be_silent(self) -> bool:
        """About money that went somewhere nothing may be dropped, but a repeat of what is stored already."""
        payment, _ = self.payment
        if not self.word[1]:  # a word that nobody knows, which may tell of the money of a payment that is over
            is_own = self.is_ours and self.asked != "another account" and self.environment[1] is SANDBOX
            return payment is None or not (payment.is_final and is_own)
        if self.word[0] is Outcome.SUCCEEDED:
            return self.is_exact and self.is_ours and bool({REFERENCE, SIMULATED} & set(self.paid))
        return self.word[0] is not Outcome.REVERSED or (payment is not None and payment.status is Status.REVERSED)


def cases() -> Iterator[Case]:
    return map(Case._make, product(WORDS, PAYMENTS, ATTEMPTS, ENVIRONMENTS, ASKED, AMOUNTS, CURRENCIES, PAID))


def judged(case: Case, attempts: dict[object, Attempt], report: ProviderReport) -> Verdict:
    (payment, now), (state, gateway) = case.payment, case.attempt
    own = attempts[state]
    asked = {"nobody": None, "another": attempts["another"]}.get(case.asked, own)
    heard: dict[str, Any] = {"gateway": gateway, "environment": case.environment[1], "actor": "test", "now": now}
    return judge(report, payment, [own] if state is not None else [], asked=asked, paid=case.paid, **heard)


@pytest.mark.rule("description.4", "payments.16", "provider-events.6")
def test_a_report_moves_a_payment_on_exact_evidence_alone_and_no_money_is_silent() -> None:
    handed = replace(an_attempt(state=AttemptState.HANDED_OFF), account="ours")
    attempts: dict[object, Attempt] = {None: handed, "another": an_attempt(number=2)}
    attempts |= {state: replace(an_attempt(state=state), account="ours") for state in AttemptState}
    reports = {
        key: replace(
            a_report(key[0][0], amounts=key[3], currency=key[4]),
            environment=key[1],
            is_known_status=key[0][1],
            account="another" if key[2] == "another account" else "ours",
        )
        for key in product(WORDS, {body for body, _ in ENVIRONMENTS}, ASKED, AMOUNTS, CURRENCIES)
    }
    tried = Counter[ReportEffect]()
    for case in cases():
        payment = case.payment[0]
        report = reports[case.word, case.environment[0], case.asked, case.amounts, case.currency]
        verdict = judged(case, attempts, report)
        tried[verdict.effect] += 1
        assert (verdict.effect is ReportEffect.MOVED) is case.must_move, case
        if case.must_move:
            assert [after.status for after, _ in verdict.changes] == [REACHES[case.word[0]]], case
        elif verdict.changes:  # its hour was over before
            ends = [(after.status, after.failure_reason) for after, _ in verdict.changes]
            assert (ends, payment) == ([(Status.FAILED, "EXPIRED")], a_payment()), case
        is_told = verdict.anomaly is not None or verdict.effect is ReportEffect.MOVED
        assert is_told or case.may_be_silent, case
        assert case.word[1] or verdict.anomaly in (None, AnomalyKind.UNKNOWN_STATUS, AnomalyKind.MISMATCH), case
        assert (verdict.effect is ReportEffect.MISMATCH) <= (verdict.anomaly is not None), case
        if verdict.anomaly is AnomalyKind.LATE_FAILURE:
            assert payment is None or payment.status is not Status.FAILED, case
        if verdict.anomaly is AnomalyKind.SECOND_CHARGE:
            assert not {REFERENCE, SIMULATED} & set(case.paid), case
    assert set(tried) == set(ReportEffect)
