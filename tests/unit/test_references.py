"""References nobody can guess: every character of the suffix is drawn evenly and apart from the others."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from payagg.adapters.system import SystemEntropy
from payagg.domain.values import REFERENCE_ALPHABET, make_reference

DAY = datetime(2025, 1, 31, tzinfo=UTC)
DRAWS = 200_000
# Fair draws pass 130 at 35 degrees of freedom once in 10^12, and meet 40 repeats, 9 being expected, once in 10^13:
# the six characters and the repeats together raise a false alarm less than once in 10^11 runs.
CHI_SQUARE_MAX = 130.0
REPEATS_MAX = 40


def suffixes(draw: Callable[[], str]) -> list[str]:
    return [draw().rpartition("-")[2] for _ in range(DRAWS)]


def chi_square(characters: Iterable[str]) -> float:
    expected = DRAWS / len(REFERENCE_ALPHABET)
    counts = Counter(characters)
    assert set(counts) <= set(REFERENCE_ALPHABET)
    return sum((counts[character] - expected) ** 2 / expected for character in REFERENCE_ALPHABET)


def complaints(drawn: list[str]) -> list[int | str]:
    """The positions whose characters are uneven, and 'repeats' when too many suffixes are equal."""
    columns = zip(*drawn, strict=True)
    uneven: list[int | str] = [
        position for position, column in enumerate(columns) if chi_square(column) > CHI_SQUARE_MAX
    ]
    return [*uneven, "repeats"] if DRAWS - len(set(drawn)) > REPEATS_MAX else uneven


def test_the_system_draws_references_evenly() -> None:
    entropy = SystemEntropy("PAY")
    assert complaints(suffixes(lambda: entropy.reference(DAY))) == []


def test_draws_that_favour_characters_or_depend_on_each_other_are_noticed() -> None:
    chance = random.Random(1)

    def from_bytes() -> str:
        """256 is no multiple of 36: the first four characters come more often."""
        return "PAY-20250131-" + "".join(REFERENCE_ALPHABET[byte % 36] for byte in chance.randbytes(6))

    def in_pairs() -> str:
        """Even in every position, yet only 46,656 different ones."""
        return make_reference("PAY", DAY, chance.randrange(36**3) * (36**3 + 1))

    assert complaints(suffixes(from_bytes)) == [0, 1, 2, 3, 4, 5]
    assert complaints(suffixes(in_pairs)) == ["repeats"]
