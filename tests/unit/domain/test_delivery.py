"""When a delivery is sent, again and for the last time."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing.builders import NOW, SECOND, a_delivery, an_event
from payagg_testing.memory.delivery_queue import concurrency_after

from payagg.domain.delivery import SCHEDULE, DeliveryStatus, attempts_before_redelivery, delay_after, due_after_loss
from payagg.domain.values import Environment

MIDDLE = 0.5  # the chance that leaves the planned delay as it is
# Seconds; ten tries over 75 hours and 35 minutes, and of the sandbox the first four.
LIVE_PLAN = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
PLANS = {
    Environment.LIVE: [SECOND * seconds for seconds in LIVE_PLAN],
    Environment.SANDBOX: [SECOND * seconds for seconds in LIVE_PLAN[:4]],
}


def test_after_each_failure_the_next_try_waits_as_planned_until_none_are_left() -> None:
    for environment, plan in PLANS.items():
        assert list(SCHEDULE[environment]) == plan
        assert [delay_after(environment, tries, MIDDLE) for tries in range(1, len(plan))] == plan[1:]
        for tries in (len(plan), len(plan) + 1):
            assert delay_after(environment, tries, MIDDLE) is None
        assert delay_after(environment, len(plan), MIDDLE, SECOND) is None  # Retry-After adds no try


@given(st.integers(1, 9), st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_a_delay_by_a_fifth_either_way(tries: int, chance: float) -> None:
    delay, planned = delay_after(Environment.LIVE, tries, chance), PLANS[Environment.LIVE][tries]
    assert delay is not None
    assert planned * 0.8 - SECOND / 1000 <= delay <= planned * 1.2


def test_retry_after_counts_between_one_and_two_times_the_planned_delay() -> None:
    counts = {0: 300, 299: 300, 300: 300, 301: 301, 600: 600, 601: 600, 3_600_000: 600}
    delays = {asked: delay_after(Environment.LIVE, 2, 0.0, asked * SECOND) for asked in counts}
    assert delays == {asked: expected * SECOND for asked, expected in counts.items()}


@pytest.mark.parametrize("environment", Environment)
def test_a_delivery_is_due_at_once_in_the_lane_of_its_endpoint_or_its_business(environment: Environment) -> None:
    event = an_event(environment=environment)
    delivery = a_delivery(event)
    assert (delivery.partition, delivery.status, delivery.attempts) == ("whe_1", DeliveryStatus.PENDING, 0)
    assert delivery.next_attempt_at == event.created_at
    hosts = ("https://shop.example/own?x=1", "https://other.example/own")
    partitions = {a_delivery(event, endpoint_id=None, url=url).partition for url in hosts}
    assert partitions == {f"biz_1:{environment.value}"}


def test_after_the_last_instant_one_try_alone_is_left() -> None:
    for lost, is_over in ((2, False), (3, True)):
        delivery = replace(a_delivery(), lost_tries=lost)
        last = delivery.created_at + sum(SCHEDULE[delivery.environment], timedelta(0))
        assert due_after_loss(delivery, last) == (None if is_over else last)
        assert due_after_loss(delivery, last - SECOND) == last


@pytest.mark.parametrize("environment", Environment)
def test_each_try_lost_waits_as_long_as_the_schedule_says_and_the_last_delay_stays(environment: Environment) -> None:
    schedule = SCHEDULE[environment]
    delivery = replace(a_delivery(an_event(environment=environment)), lost_tries=1)
    assert due_after_loss(delivery, delivery.created_at + 7 * SECOND) == delivery.created_at + 7 * SECOND  # at once
    for lost in range(2, len(schedule) + 3):
        delivery = replace(delivery, lost_tries=lost)
        delay = schedule[min(lost, len(schedule) - 1)]
        assert due_after_loss(delivery, delivery.created_at) == delivery.created_at + delay


def test_the_window_grows_by_one_after_a_good_answer_and_halves_after_a_bad_one() -> None:
    grows = {(5, 3): 8, (49, 3): 50, (50, 0): 50}
    assert {case: concurrency_after(case[0], good=case[1], is_bad=False) for case in grows} == grows
    halves = {(5, 3): 2, (2, 0): 1, (1, 9): 1}
    assert {case: concurrency_after(case[0], good=case[1], is_bad=True) for case in halves} == halves


def test_the_window_falls_to_its_first_size_while_good_answers_take_their_time() -> None:
    """Slow ones hold a place as long as failed ones: two merchants of fifty each would hold all."""
    falls = {(50, 9): 25, (9, 0): 5, (5, 3): 5, (2, 1): 2}
    assert {case: concurrency_after(case[0], good=case[1], is_bad=False, is_slow=True) for case in falls} == falls
    assert concurrency_after(50, good=1, is_bad=True, is_slow=True) == 25


@pytest.mark.parametrize(
    ("attempts", "waits", "lost", "counted"),
    [(3, 60, 0, 2), (3, 0, 0, 3), (3, -60, 0, 3), (3, None, 0, 3), (3, 60, 2, 3), (0, 60, 0, 0)],
    ids=["early", "due", "overdue", "ended", "lost with its worker", "never tried"],
)
def test_a_redelivery_before_its_time_takes_no_place_in_the_schedule(
    attempts: int, waits: int | None, lost: int, counted: int
) -> None:
    due_at = None if waits is None else NOW + waits * SECOND
    status = DeliveryStatus.FAILED if waits is None else DeliveryStatus.PENDING
    delivery = replace(a_delivery(), attempts=attempts, lost_tries=lost, status=status, next_attempt_at=due_at)
    assert attempts_before_redelivery(delivery, NOW) == counted
