"""A limit holds over any window: whatever the times, no stretch of that length has more hits than it allows."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from payagg_testing.builders import MINUTE, SECOND
from payagg_testing.memory.state import HitWindow

from payagg.domain.rate_limit import MARKS_MAX, RateLimit, TokenBucket

NOON = datetime(2025, 1, 31, 12, tzinfo=UTC)


@pytest.mark.rule("limits.28")
def test_the_turn_of_the_minute_opens_nothing() -> None:
    limit, window = RateLimit(100), HitWindow()
    before = [window.hit(limit, NOON - 3 * SECOND) for _ in range(100)]
    after = [window.hit(limit, NOON + 3 * SECOND) for _ in range(66)]
    assert before == [None] * 100
    assert after == [NOON + 57 * SECOND] * 66
    assert window.hit(limit, NOON + 57 * SECOND - timedelta(microseconds=1)) is not None
    assert window.hit(limit, NOON + 57 * SECOND) is None


def test_a_clock_that_is_set_back_lets_no_more_through_and_fills_no_bucket() -> None:
    limit, window = RateLimit(2), HitWindow()
    assert [window.hit(limit, NOON), window.hit(limit, NOON - SECOND)] == [None, None]
    assert window.hit(limit, NOON - SECOND) == NOON - SECOND + MINUTE
    limit, bucket = RateLimit(1), TokenBucket(RateLimit(1), NOON)
    assert [bucket.take(limit, NOON), bucket.take(limit, NOON - MINUTE)] == [0.0, 60.0]
    assert bucket.take(limit, NOON + 59 * SECOND) > 0
    assert bucket.take(limit, NOON + MINUTE + SECOND) == 0.0


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=400)])
def test_what_was_counted_by_a_clock_that_was_ahead_holds_nobody_up(ahead: timedelta) -> None:
    limit, window = RateLimit(1), HitWindow()
    bucket = TokenBucket(limit, NOON + ahead)
    assert (window.hit(limit, NOON + ahead), bucket.take(limit, NOON + ahead)) == (None, 0.0)
    assert (window.hit(limit, NOON), bucket.take(limit, NOON)) == (None, 60.0)
    assert window.hit(limit, NOON + SECOND) == NOON + MINUTE
    assert bucket.take(limit, NOON + MINUTE) == 0.0


@pytest.mark.rule("limits.28")
@pytest.mark.parametrize("most", [1, 3, MARKS_MAX + 1])
@given(gaps=st.lists(st.integers(0, 30_000_000), min_size=1, max_size=60))
def test_no_window_has_more_hits_than_the_limit(most: int, gaps: list[int]) -> None:
    limit, window, now, taken = RateLimit(most), HitWindow(), NOON, []
    for gap in gaps:
        now += timedelta(microseconds=gap)
        free = window.hit(limit, now)
        if free is None:
            taken.append(now)
        else:
            assert now < free <= now + MINUTE + limit.grain
            assert sum(at > now - MINUTE - limit.grain for at in taken) >= most
    assert all(sum(at - MINUTE < other <= at for other in taken) <= most for at in taken)


def test_a_large_limit_keeps_few_marks() -> None:
    grains = [RateLimit(most).grain for most in (1, MARKS_MAX - 1, MARKS_MAX, MARKS_MAX + 1)]
    assert grains == [timedelta(microseconds=1)] * 3 + [MINUTE / MARKS_MAX]
    limit, window = RateLimit(10_000), HitWindow()
    hits = [window.hit(limit, NOON + n * timedelta(milliseconds=5)) for n in range(12_000)]
    assert hits.count(None) == 10_000
    assert len(window._hits) <= MARKS_MAX + 1


def test_a_bucket_gives_its_tokens_at_once_and_as_many_again_over_a_window() -> None:
    limit = RateLimit(10)
    bucket = TokenBucket(limit, NOON)
    assert [bucket.take(limit, NOON) for _ in range(11)] == pytest.approx([0.0] * 10 + [6.0])
    assert bucket.take(limit, NOON + 5 * SECOND) == pytest.approx(1.0)
    assert bucket.take(limit, NOON + 6.001 * SECOND) == 0.0
    assert bucket.take(limit, NOON + 6.001 * SECOND) == pytest.approx(5.999)
    later = NOON + 10 * MINUTE
    assert [bucket.take(limit, later) for _ in range(11)] == pytest.approx([0.0] * 10 + [6.0])


def test_many_tokens_are_taken_whole_or_not_at_all_and_one_given_back_overflows_no_bucket() -> None:
    limit = RateLimit(100, timedelta(seconds=50))
    bucket = TokenBucket(limit, NOON)
    assert [bucket.take(limit, NOON, number) for number in (60, 60, 40)] == [0.0, 10.0, 0.0]
    assert [bucket.take(limit, NOON + n * SECOND, 20) for n in (9, 10)] == [pytest.approx(1.0), 0.0]
    limit = RateLimit(2)
    bucket = TokenBucket(limit, NOON)
    bucket.give_back(limit)
    assert [bucket.take(limit, NOON) for _ in range(3)] == [0.0, 0.0, 30.0]
    bucket.give_back(limit)
    assert bucket.left == 1
    assert [bucket.take(limit, NOON) for _ in range(2)] == [0.0, 30.0]


@pytest.mark.parametrize("most", [1, 7, 1_200])
@given(gaps=st.lists(st.integers(0, 30_000_000), min_size=1, max_size=60))
def test_a_bucket_lets_no_more_through_than_a_burst_and_the_rate(most: int, gaps: list[int]) -> None:
    limit, now, taken = RateLimit(most), NOON, 0
    bucket = TokenBucket(limit, now)
    for gap in gaps:
        now += timedelta(microseconds=gap)
        wait = bucket.take(limit, now)
        taken += wait == 0.0
        assert 0 <= wait <= 60 / most
        assert taken <= most + (now - NOON) / limit.window * most + 1e-6
