"""What `process` may do next, as a function: each row is a payment with its attempts, and the step."""

from dataclasses import replace
from datetime import timedelta

import pytest

from payagg.domain.attempt import (
    ATTEMPTS_MAX,
    LEASE,
    Attempt,
    AttemptState,
    ExistingHandOff,
    Start,
    Wait,
    ensure_attempts_left,
    next_step,
)
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Payment, Trigger
from tests.support.builders import NOW, a_payment, an_attempt

CLAIMED, HANDED_OFF, REFUSED, UNKNOWN = AttemptState
PAYMENT = a_payment()
HOUR = timedelta(hours=1)


def attempt(state: AttemptState, number: int = 1) -> Attempt:
    return an_attempt(PAYMENT, number, state)


FIRST, LIVE, OPEN = attempt(HANDED_OFF), attempt(CLAIMED), attempt(UNKNOWN)
DEAD = replace(LIVE, lease_until=NOW)
assert FIRST.hand_off is not None
ROWS = {
    "nothing yet": ([], Start("provider_a", None)),
    "handed off": ([FIRST], ExistingHandOff(FIRST, FIRST.hand_off)),
    "a live claimant": ([LIVE], Wait()),
    "a dead claimant": ([DEAD], Start("provider_a", DEAD)),
    "an answer that never came": ([OPEN], Start("provider_a", OPEN)),
    "refused": ([attempt(REFUSED)], Start("provider_a", None)),
    "handed off after a refusal": ([attempt(REFUSED), FIRST], ExistingHandOff(FIRST, FIRST.hand_off)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_next_step(row: tuple[list[Attempt], object]) -> None:
    attempts, step = row
    assert next_step(PAYMENT, attempts, "provider_a", NOW) == step


def test_the_preferred_gateway_serves_where_the_payer_names_none() -> None:
    assert next_step(replace(PAYMENT, gateway="provider_b"), [], None, NOW) == Start("provider_b", None)
    with pytest.raises(Refusal) as refused:
        next_step(replace(PAYMENT, gateway=None), [], None, NOW)
    assert (refused.value.code, refused.value.field) == (ErrorCode.VALIDATION_ERROR, "gatewaySlug")


@pytest.mark.parametrize(
    ("payment", "code"),
    [
        (replace(PAYMENT, created_at=NOW - timedelta(hours=1), expires_at=NOW), ErrorCode.PAYMENT_EXPIRED),
        (PAYMENT.move(Trigger.SUCCEED, NOW, actor="test")[0], ErrorCode.PAYMENT_ALREADY_PROCESSED),
    ],
)
@pytest.mark.parametrize("attempts", [[], [FIRST], [LIVE]])
def test_an_ended_payment_is_refused_whatever_its_attempts(
    payment: Payment, code: ErrorCode, attempts: list[Attempt]
) -> None:
    with pytest.raises(Refusal) as refused:
        next_step(payment, attempts, "provider_a", NOW)
    assert refused.value.code is code


def test_a_claim_is_held_to_the_end_of_its_lease_and_no_longer() -> None:
    claim = replace(LIVE, lease_until=NOW + LEASE)
    assert next_step(PAYMENT, [claim], "provider_a", NOW + LEASE - timedelta(microseconds=1)) == Wait()
    assert next_step(PAYMENT, [claim], "provider_a", NOW + LEASE) == Start("provider_a", claim)


def test_attempts_are_bounded() -> None:
    refused = [attempt(REFUSED, number) for number in range(1, ATTEMPTS_MAX + 1)]
    ensure_attempts_left(refused[:-1])
    with pytest.raises(Refusal) as raised:
        ensure_attempts_left(refused)
    assert raised.value.code is ErrorCode.GATEWAY_NOT_AVAILABLE
