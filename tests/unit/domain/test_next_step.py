"""What `process` may do next, as a function: each row is a payment with its attempts, and the step."""

from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, a_payment, an_attempt

from payagg.domain.attempt import Attempt, AttemptState, ExistingHandOff, Start, Wait, next_step

CLAIMED, HANDED_OFF, REFUSED, UNKNOWN = AttemptState
PAYMENT = a_payment()


def attempt(state: AttemptState) -> Attempt:
    return an_attempt(PAYMENT, 1, state)


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


@pytest.mark.parametrize(("attempts", "step"), ROWS.values(), ids=ROWS)
def test_the_next_step(attempts: list[Attempt], step: object) -> None:
    assert next_step(PAYMENT, attempts, "provider_a", NOW) == step


def test_a_claim_is_held_to_the_end_of_its_lease_and_no_longer() -> None:
    claim, end = attempt(CLAIMED), NOW + timedelta(seconds=20)  # longer than the 15 s that a provider may take
    assert next_step(PAYMENT, [claim], "provider_a", end - timedelta(microseconds=1)) == Wait()
    assert next_step(PAYMENT, [claim], "provider_a", end) == Start("provider_a", claim)
