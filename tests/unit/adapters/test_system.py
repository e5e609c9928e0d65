"""References nobody can guess: every character of the suffix is drawn evenly and apart from the others. And a machine
whose clock differs from the database's says so."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from payagg.adapters.system import DatabaseClock, SystemClock, SystemEntropy
from payagg.application import telemetry
from payagg.domain.values import REFERENCE_ALPHABET

DAY = datetime(2025, 1, 31, tzinfo=UTC)
DRAWS = 100_000
# Fair draws pass 130 at 35 degrees of freedom once in 10^12, and meet 20 repeats, two being expected, once in 10^13:
# the six characters and the repeats together raise a false alarm less than once in 10^11 runs.
CHI_SQUARE_MAX = 130.0
REPEATS_MAX = 20


def chi_square(characters: Iterable[str]) -> float:
    expected = DRAWS / len(REFERENCE_ALPHABET)
    counts = Counter(characters)
    assert set(counts) <= set(REFERENCE_ALPHABET)
    return sum((counts[character] - expected) ** 2 / expected for character in REFERENCE_ALPHABET)


def test_the_system_draws_references_evenly() -> None:
    entropy = SystemEntropy("PAY")
    drawn = [entropy.reference(DAY).rpartition("-")[2] for _ in range(DRAWS)]
    assert max(map(chi_square, zip(*drawn, strict=True))) <= CHI_SQUARE_MAX
    assert DRAWS - len(set(drawn)) <= REPEATS_MAX


@pytest.mark.parametrize(("seconds", "lines"), [(0, 0), (4, 0), (6, 1), (-6, 1)])
async def test_a_machine_more_than_five_seconds_off_says_so_once(seconds: int, lines: int) -> None:
    async def ask() -> datetime:
        return SystemClock().now() - timedelta(seconds=seconds)

    telemetry.counts.clear()
    clock = DatabaseClock(ask)
    with capture_logs() as logged:
        await clock.synchronise()
        await clock.synchronise()
    assert [line["log_level"] for line in logged] == ["warning"] * lines
    assert abs(telemetry.counts["clock_difference_seconds_sum",] / telemetry.MICRO - 2 * abs(seconds)) < 1
