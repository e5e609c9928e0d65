"""The sandbox simulator's test cards: the outcome of each number. Numbers are matched, never stored."""

from datetime import datetime, timedelta

from payagg.domain.errors import invalid
from payagg.domain.report import Outcome

# Exact test numbers only: anything else is refused, so a real card can never be stored by accident.
TEST_CARDS = {
    "4242424242424242": "success",
    "4000000000000002": "declined",
    "4000000000009995": "insufficient_funds",
    "4000000000000259": "reversed",
    "4000000000000077": "slow_success",
    "4000000000000119": "no_answer",
}
SLOW = timedelta(seconds=30)


def scenario_of(card_number: str | None) -> str:
    """The scenario of a test card, spaces ignored; raises VALIDATION_ERROR on `cardNumber` for anything else."""
    scenario = TEST_CARDS.get((card_number or "").replace(" ", ""))
    if scenario is None:
        raise invalid("cardNumber", "Use one of the documented test cards.")
    return scenario


def outcome_of(scenario: str, since: timedelta) -> tuple[Outcome, str | None]:
    """The simulated processor's outcome `since` the hand-off, and the failure reason of a decline."""
    match scenario:
        case "success":
            return Outcome.SUCCEEDED, None
        case "slow_success":
            return (Outcome.SUCCEEDED if since >= SLOW else Outcome.PENDING), None
        case "reversed":
            return Outcome.REVERSED, None
        case "declined":
            return Outcome.FAILED, "DECLINED"
        case "insufficient_funds":
            return Outcome.FAILED, "INSUFFICIENT_FUNDS"
        case _:
            return Outcome.PENDING, None


def time_since_hand_off(handed_off_at: datetime | None, now: datetime | None) -> timedelta:
    """Time since the hand-off; zero when there was none."""
    return now - handed_off_at if handed_off_at and now else timedelta(0)
