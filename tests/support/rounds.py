"""How long the tests that search go on: 20 rounds by default, more with `make soak`."""

import os

ROUNDS = int(os.environ.get("PAYAGG_TEST_ROUNDS", "20"))


def scaled(number: int) -> int:
    """`number`, which is for 20 rounds, as it is for ROUNDS."""
    return number * ROUNDS // 20
