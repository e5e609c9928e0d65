"""How long the tests that search go on: 20 rounds by default, more by night (lab/races)."""

import os

SHORT = 20
ROUNDS = int(os.environ.get("PAYAGG_TEST_ROUNDS", SHORT))


def scaled(number: int) -> int:
    """`number`, which is for 20 rounds, as it is for ROUNDS."""
    return number * ROUNDS // SHORT
