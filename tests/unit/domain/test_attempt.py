"""The charge: attempts' references and leases, what a report must match, a provider's health, the test cards."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing import strategies
from payagg_testing.builders import DAY, NOW, REFERENCE, TICK, a_payment, a_report, an_attempt

from payagg.domain.attempt import (
    CHECK_AFTER,
    NO_FACTS,
    AttemptState,
    Start,
    Wait,
    after_check,
    next_check,
    next_step,
    payment_reference,
    postpone_check,
    provider_reference,
)
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import DRAIN_WINDOW, SANDBOX_SLUG, SETTLING_MAX
from payagg.domain.health import Health
from payagg.domain.payment import Status, Trigger
from payagg.domain.report import FaultKind, Outcome
from payagg.domain.simulator import TEST_CARDS, outcome_of, scenario_of, time_since_hand_off
from payagg.domain.values import Environment
from tests.support.refusals import refusal_of


@given(strategies.references(), st.integers(1, 9999), st.integers(1, 9999))
def test_a_provider_never_sees_one_reference_twice_and_each_leads_back(reference: str, one: int, other: int) -> None:
    first, second = provider_reference(reference, one), provider_reference(reference, other)
    assert (first == second) == (one == other)
    assert provider_reference(reference, 12) == f"{reference}.12"
    assert payment_reference(first) == payment_reference(second) == reference


def test_a_claim_is_held_to_the_end_of_its_lease_and_no_longer() -> None:
    claim, end = an_attempt(), NOW + timedelta(seconds=20)  # longer than the 15 s that a provider may take
    assert next_step(a_payment(), [claim], "provider_a", end - TICK) == Wait()
    assert next_step(a_payment(), [claim], "provider_a", end) == Start("provider_a", claim)


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999_999])
def test_asks_are_spread_by_a_tenth_but_by_less_than_a_drain_lasts(chance: float) -> None:
    """The last one comes before a gateway that was deleted right after its drain loses its secrets."""
    minutes = [1, 3, 10, 30, 60, 180, 360, 720, 1440, 2880, 4320]
    assert [delay / timedelta(minutes=1) for delay in CHECK_AFTER] == minutes
    now = NOW
    for after in CHECK_AFTER:
        due = next_check(NOW, now, chance)
        assert due is not None
        assert timedelta(0) <= due - (NOW + after) <= min(after * 0.1, timedelta(minutes=25))
        now = due
    assert next_check(NOW, now, chance) is None
    assert now < NOW + DRAIN_WINDOW + SETTLING_MAX


@pytest.mark.rule("provider-events.6")
@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"provider_reference": f"{REFERENCE}.2"}, None),
        ({"amounts": frozenset({150_000, 152_250})}, None),  # a fee on top makes more than one honest amount
        ({"provider_reference": REFERENCE + "A"}, "reference"),
        ({"environment": Environment.LIVE}, "environment"),
        ({"currency": "USD"}, "currency"),
        ({"amounts": frozenset({150_001, 1_500})}, "amount"),
        ({"amounts": frozenset({0})}, "amount"),
        ({"outcome": Outcome.FAILED, "amounts": frozenset({0})}, None),  # nothing came
        ({"outcome": Outcome.FAILED, "amounts": frozenset({1})}, "amount"),
    ],
)
def test_what_differs_is_named(fields: dict[str, Any], fact: str | None) -> None:
    """test_report_product.py says what that does."""
    assert a_report(**fields).mismatch(a_payment()) == fact


def test_only_an_answer_about_the_attempt_or_a_certain_fault_proves_that_nothing_was_paid() -> None:
    second = an_attempt(a_payment(), 2)
    own: dict[str, Any] = {"provider_reference": second.provider_reference}
    assert a_report(Outcome.UNPAID, **own).proves_unpaid(a_payment(), second)
    live = a_report(Outcome.UNPAID, environment=Environment.LIVE, **own)
    for other in (a_report(Outcome.UNPAID), live, a_report(Outcome.PENDING, **own)):
        assert not other.proves_unpaid(a_payment(), second)
    certain = {FaultKind.BAD_CREDENTIALS, FaultKind.REJECTED, FaultKind.RATE_LIMITED}
    assert {kind for kind in FaultKind if kind.is_certain} == certain
    of_the_request = {FaultKind.REJECTED, FaultKind.DUPLICATE, FaultKind.RATE_LIMITED}
    assert {kind for kind in FaultKind if not kind.is_unhealthy} == of_the_request


def after_faults(count: int) -> Health:
    health = Health("provider_a", Environment.LIVE)
    for _ in range(count):
        health = health.after(False, NOW)
    return health


def test_the_fifth_fault_in_a_row_pauses_a_provider_and_then_one_call_probes() -> None:
    assert not after_faults(4).is_open(NOW)
    paused, over = after_faults(5), NOW + timedelta(seconds=30)
    for instant in (NOW, over - TICK):
        assert paused.is_open(instant)
        assert paused.admit(instant) is None
    assert not paused.is_open(over)
    probing = paused.admit(over)
    assert probing is not None
    assert probing.admit(over) is None
    assert probing.admit(over + timedelta(seconds=20)) is not None  # the probe's process died
    assert probing.after(True, over) == Health("provider_a", Environment.LIVE)


def test_each_failed_probe_doubles_the_pause_up_to_ten_minutes() -> None:
    health, pauses = after_faults(5), []
    for _ in range(7):
        pauses.append(health.open_for.total_seconds())
        assert health.open_until is not None
        probing = health.admit(health.open_until)
        assert probing is not None
        assert probing.open_until is not None
        health = probing.after(False, probing.open_until - TICK)
    assert pauses == [30, 60, 120, 240, 480, 600, 600]


def test_one_success_forgets_every_fault_and_older_calls_stretch_no_pause() -> None:
    assert after_faults(9) == after_faults(5)
    healthy = after_faults(9).after(True, NOW)
    assert healthy == Health("provider_a", Environment.LIVE)
    assert not healthy.after(False, NOW).is_open(NOW)
    assert after_faults(4).admit(NOW) == after_faults(4)


def test_any_other_card_is_refused_and_not_repeated() -> None:
    for number in (None, "", "5555555555554444", "4242-4242-4242-4242", "42424242424242424", "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢"):
        refused = refusal_of(scenario_of, number)
        assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "cardNumber")
        assert not number or number not in refused.message


@pytest.mark.parametrize(
    ("card", "seconds", "outcome", "reason"),
    [
        ("4242424242424242", 0, Outcome.SUCCEEDED, None),
        ("4000000000000002", 0, Outcome.FAILED, "DECLINED"),
        ("4000000000009995", 0, Outcome.FAILED, "INSUFFICIENT_FUNDS"),
        ("4000000000000259", 0, Outcome.REVERSED, None),
        ("4000000000000077", 0, Outcome.PENDING, None),
        ("4000000000000077", 29, Outcome.PENDING, None),
        ("4000000000000077", 30, Outcome.SUCCEEDED, None),
        ("4000000000000119", 0, Outcome.PENDING, None),
        ("4000000000000119", 10**7, Outcome.PENDING, None),
    ],
)
def test_each_test_card_does_what_is_documented(card: str, seconds: int, outcome: Outcome, reason: str | None) -> None:
    spaced = " ".join(card[n : n + 4] for n in range(0, 16, 4))
    assert scenario_of(spaced) == scenario_of(card) == TEST_CARDS[card]
    passed = time_since_hand_off(NOW, NOW + timedelta(seconds=seconds))
    assert outcome_of(scenario_of(card), passed) == (outcome, reason)
    assert time_since_hand_off(None, NOW) == timedelta(0), "since a hand-off that never was"


def test_what_is_not_to_be_asked_about_leaves_the_list() -> None:
    payment = a_payment()
    due = an_attempt(payment, state=AttemptState.HANDED_OFF, next_ask_at=NOW)
    assert postpone_check(payment, due, NOW) is None
    refused = an_attempt(payment, state=AttemptState.REFUSED, next_ask_at=NOW)
    paid, _ = payment.move(Trigger.SUCCEED, NOW, actor="test")
    assert postpone_check(paid, due, NOW) is None, "it may be paid, too"
    simulated = replace(due, gateway=SANDBOX_SLUG, gateway_id=None)
    assert postpone_check(payment, simulated, NOW) is None
    assert simulated.confirm(NO_FACTS, NOW).next_ask_at is None
    for state, attempt in (payment, refused), (paid, simulated):
        left = postpone_check(state, attempt, NOW)
        assert left is not None
        assert left.next_ask_at is None


def test_the_schedule_runs_from_the_hand_off_and_without_one_from_the_attempt() -> None:
    payment = a_payment(Status.PENDING)
    later = NOW + timedelta(minutes=10)
    handed = an_attempt(payment, state=AttemptState.HANDED_OFF, handed_off_at=later)
    assert after_check(payment, handed, later, 0.0, is_answered=True).next_ask_at == later + CHECK_AFTER[0]
    lost = an_attempt(payment, state=AttemptState.UNKNOWN)
    assert after_check(payment, lost, NOW, 0.0, is_answered=True).next_ask_at == NOW + CHECK_AFTER[0]


def test_an_attempt_that_was_found_paid_keeps_its_checks_however_its_claim_ends() -> None:
    """It may be refunded, and the event of that may be lost."""
    paid = an_attempt(state=AttemptState.CLAIMED, confirmed_at=NOW, next_ask_at=NOW + DAY)
    for ended in (paid.refuse(), paid.leave_unknown(NOW + TICK, 0.5)):
        assert (ended.state, ended.confirmed_at, ended.next_ask_at) == (AttemptState.UNKNOWN, NOW, NOW + DAY)
    after_all = an_attempt(state=AttemptState.REFUSED).confirm(NO_FACTS, NOW)
    assert postpone_check(a_payment(Status.SUCCESS), after_all, NOW + DAY) is None
