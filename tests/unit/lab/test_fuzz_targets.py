"""What fuzzing begins with and what it found, without a fuzzer; and each target notices a parser that is wrong."""

import pytest

from lab.parsers.run import TARGETS
from lab.parsers.target import FuzzTarget

CASES = [pytest.param(target, seed, id=f"{target.name} {seed[:24]!r}") for target in TARGETS for seed in target.seeds]


@pytest.mark.parametrize(("target", "seed"), CASES)
def test_a_seed_holds(target: FuzzTarget, seed: bytes) -> None:
    target.check(seed)
