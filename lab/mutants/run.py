"""Changes one place of the money's code at a time, by Cosmic Ray's operators, and runs the unit tests of that module.

A mutant survives when they all pass. KILLED of the sample must be killed, and `explained.py` explains each survivor.
"""

import argparse
from collections.abc import Sequence

from lab.kit.product_copy import Copy, a_copy
from lab.kit.tally import Tally
from lab.mutants.explained import EXPLAINED
from lab.mutants.modules import MODULES
from lab.mutants.mutants import Mutant, drawn

EACH, SEED = 6, 1  # the usual sample
KILLED = 0.9
TEST_SECONDS = 120.0  # an end for tests that a mutant stops
STABLE = ("-x", "--hypothesis-seed=0")


def is_killed(copy: Copy, mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether a test fails, breaks or never ends."""
    whole = (copy.source / mutant.file).read_text()
    copy.write(mutant.file, mutant.text)
    try:
        ran = copy.run(tests, *STABLE, timeout=TEST_SECONDS)
    except TimeoutError:
        return True
    finally:
        copy.write(mutant.file, whole)
    return bool(ran.failures) or not ran.passed or "error" in ran.output.splitlines()[-1]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab mutants", description=__doc__)
    parser.add_argument("--only", default="", help="part of a module's name, as checkout")
    parser.add_argument("--each", type=int, default=EACH, help="places of each module; 0 for all")
    parser.add_argument("--seed", type=int, default=SEED)
    chosen = parser.parse_args(arguments)
    tally, tried, killed = Tally("mutants", arguments), 0, 0
    with a_copy() as copy:
        for file, tests in MODULES.items():
            if chosen.only not in file:
                continue
            sound = copy.run(tests, *STABLE)
            if sound.failures or not sound.passed:
                raise SystemExit(f"{file}: its tests fail without a mutant\n{sound.output}")
            mutants = drawn(copy.source, file, chosen.each, chosen.seed)
            survivors = [one for one in mutants if not is_killed(copy, one, tests)]
            tried, killed = tried + len(mutants), killed + len(mutants) - len(survivors)
            why = {one: EXPLAINED.get((one.file, one.before)) for one in survivors}
            for one in survivors:
                print(
                    f"        {one.file}:{one.line} survives: {why[one] or 'not explained'}\n    - {one.before}\n    + {one.after}"
                )
            bare = [f"line {one.line} survives, and nobody says why" for one in survivors if why[one] is None]
            tally.line(f"{file}: {len(mutants) - len(survivors)} of {len(mutants)} killed", bare)
    tally.line(f"{killed} of {tried} killed", ["too few"] * (killed < KILLED * tried))
    is_usual = (chosen.only, chosen.each, chosen.seed) == ("", EACH, SEED)
    return tally.end(whole=is_usual, killed=killed, mutants=tried)
