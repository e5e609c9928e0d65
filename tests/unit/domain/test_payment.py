"""A payment's rules of time, replay and identity, at the very instants where they change."""

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing import strategies
from payagg_testing.builders import HOUR, NOW, TICK, a_payment, an_expired_payment

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import PAYMENT, Payment, Status, Trigger, parse_metadata
from payagg.domain.values import Environment
from tests.support.refusals import refusal_of

OPEN = (Status.INITIATED, Status.PENDING)
FINAL = (Status.SUCCESS, Status.FAILED, Status.REVERSED)
IDENTITY = (
    *("reference", "business_id", "environment", "amount", "currency"),
    *("created_at", "expires_at", "idempotency_key"),
)


@pytest.mark.rule("payments.14")
def test_a_lapsed_payment_reads_as_failed_at_its_expiry_whoever_reads_when() -> None:
    assert not a_payment().as_of(NOW + HOUR - TICK).is_final
    for later in (timedelta(0), TICK, timedelta(days=9)):
        seen = a_payment().as_of(NOW + HOUR + later)
        assert (seen.status, seen.failure_reason) == (Status.FAILED, "EXPIRED")
        assert seen.settled_at == seen.updated_at == NOW + HOUR


def test_a_new_payment_has_every_field_of_its_class() -> None:
    """Its row is written from what it holds, without the class's defaults."""
    payment = Payment.initiate(
        reference="PAY-20250101-ABCDEF", business_id="biz_1", environment=Environment.SANDBOX, amount=100, now=NOW
    )
    assert vars(payment) == vars(replace(payment))


def test_only_an_initiated_payment_expires_by_the_clock() -> None:
    for payment in map(a_payment, (Status.PENDING, *FINAL)):
        assert payment.as_of(NOW + timedelta(days=30)) is payment


def test_an_open_payment_is_replayed_unchanged_and_a_completed_one_is_refused() -> None:
    initiated, pending = a_payment(), a_payment(Status.PENDING)
    assert initiated.replay(NOW + HOUR - TICK) is initiated
    assert pending.replay(NOW + HOUR) is pending  # past its window too
    for open_one in (initiated, pending):
        open_one.ensure_open()
    for completed in (*map(a_payment, FINAL), a_payment(), an_expired_payment()):  # before the sweep and after it
        assert refusal_of(completed.replay, NOW + HOUR).code is ErrorCode.DUPLICATE_PAYMENT
    for final in map(a_payment, FINAL):
        assert refusal_of(final.ensure_open).code is ErrorCode.PAYMENT_ALREADY_FINAL


@pytest.mark.rule("limits.4")
def test_process_is_taken_until_the_window_closes_and_is_gone_from_that_instant() -> None:
    for payment in map(a_payment, OPEN):
        payment.ensure_processable(NOW + HOUR - TICK)
        assert refusal_of(payment.ensure_processable, NOW + HOUR).code is ErrorCode.PAYMENT_EXPIRED
    for when in (NOW, NOW + HOUR, NOW + timedelta(days=1)):
        for final in map(a_payment, FINAL):
            assert refusal_of(final.ensure_processable, when).code is ErrorCode.PAYMENT_ALREADY_PROCESSED
        # A clock set back after the sweep un-expires nothing.
        assert refusal_of(an_expired_payment().ensure_processable, when).code is ErrorCode.PAYMENT_EXPIRED


def test_handing_over_names_the_payers_gateway_once() -> None:
    first, transition = a_payment(gateway="provider_b").hand_over("provider_a", NOW, "payer")
    again, nothing = first.hand_over("provider_b", NOW + TICK, "payer")
    assert transition is not None
    assert (first.status, first.gateway, transition.sequence) == (Status.PENDING, "provider_a", 1)
    assert again is first
    assert nothing is None


@given(strategies.payments(), st.lists(st.tuples(st.sampled_from(Trigger), strategies.waits), max_size=6))
def test_whatever_happens_identity_stays_and_the_sequence_counts_the_moves(
    payment: Payment, steps: list[tuple[Trigger, timedelta]]
) -> None:
    first, now, moves = payment, payment.created_at, 0
    for trigger, wait in steps:
        now += wait
        before = payment
        try:
            payment, transition = payment.move(trigger, now, actor="test")
        except Refusal:
            assert before.is_final
            continue
        if transition is None:
            assert payment is before
            continue
        moves += 1
        assert transition.sequence == payment.sequence == moves
        assert (transition.from_status, transition.to_status) == (before.status, payment.status)
        assert (payment.settled_at is None) == (payment.status not in PAYMENT.final)
    assert {name: asdict(first)[name] for name in IDENTITY} == {name: asdict(payment)[name] for name in IDENTITY}


def nested(depth: int) -> dict[str, Any]:
    """An object whose innermost object is at `depth`, the outermost being 1."""
    return {} if depth == 1 else {"a": nested(depth - 1)}


def json_of_size(size: int) -> dict[str, Any]:
    """Metadata of exactly `size` bytes as compact JSON."""
    return {"a": "x" * (size - len('{"a":""}'))}


LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "50 keys": ({str(n): n for n in range(50)}, {str(n): n for n in range(51)}),
    "a key of 100 characters": ({"ẹ" * 100: 1}, {"ẹ" * 101: 1}),
    "an inner key of 100 characters": ({"a": {"k" * 100: 1}}, {"a": {"k" * 101: 1}}),
    "5 levels of objects": (nested(5), nested(6)),
    "5 levels of lists": ({"a": [[[[]]]]}, {"a": [[[[[]]]]]}),
    "16 KB": (json_of_size(16 * 1024), json_of_size(16 * 1024 + 1)),
    "16 KB of wide characters": ({"a": "ẹ" * 5458}, {"a": "ẹ" * 5459}),
    "the largest 64-bit integer": ({"a": 2**63 - 1}, {"a": 2**63}),
    "the smallest 64-bit integer": ({"a": [-(2**63)]}, {"a": [-(2**63) - 1]}),
    "a fraction within 64 bits": ({"a": [9.2e18, 1e-300]}, {"a": [9.3e18]}),
    "a negative one": ({"a": -9.2e18}, {"a": -1e307}),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_metadata_may_reach_each_limit_and_not_pass_it(limit: str) -> None:
    at, past = LIMITS[limit]
    assert parse_metadata(at) is at
    refused = refusal_of(parse_metadata, past)
    assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "metadata")


@given(strategies.metadata)
def test_ordinary_metadata_is_kept_as_it_is(metadata: dict[str, Any]) -> None:
    assert parse_metadata(metadata) == metadata
