"""`make planted`: switches each defect on in a copy of the product and runs the one test that must fail then.

Exit status 1 when a defect is not caught, or a test fails without any. docs/planted-defects.md tells of it.
"""

import argparse
import re
import sys
from collections.abc import Iterator

from tests.planted import access, crypto, money, queues
from tests.planted.defect import Defect
from tests.support.product_copy import ROOT, Copy, Ran, a_copy

DOCUMENT = ROOT / "docs" / "planted-defects.md"
AREAS = {
    "Money": money.DEFECTS,
    "Crypto": crypto.DEFECTS,
    "Access and keys": access.DEFECTS,
    "Queues": queues.DEFECTS,
}
DEFECTS = tuple(defect for defects in AREAS.values() for defect in defects)
TEST_SECONDS = 300.0  # an end for a test that a defect stops, never an expectation
# A defect that only breaks the program would be caught by anything: the test must see what it does.
BROKEN = re.compile(r"(NameError|ImportError|ModuleNotFoundError|SyntaxError|AttributeError|UnboundLocalError)\b")


def tried(copy: Copy, defect: Defect) -> tuple[str, Ran]:
    """What is wrong with the catch, empty where the named test failed by what the defect does."""
    planted = defect.planted(copy.source)
    whole = {file: (copy.source / file).read_text() for file in planted}
    for file, text in planted.items():
        copy.write(file, text)
    try:
        ran = copy.run([defect.caught_by], "--tb=short", timeout=TEST_SECONDS)
    except TimeoutError:
        return "the test hangs", Ran(0, [], 0, TEST_SECONDS, "")
    finally:
        for file, text in whole.items():
            copy.write(file, text)
    if not ran.failures:
        return ("NOT CAUGHT" if ran.passed else "the test did not run"), ran
    broken = [failure for failure in ran.failures if BROKEN.match(failure)]
    return (f"breaks the program: {broken[0]}" if broken else ""), ran


def run(only: str, *, verbose: bool) -> int:
    chosen = [defect for defect in DEFECTS if only in defect.name or only in defect.caught_by]
    seconds: dict[str, float] = {}
    with a_copy() as copy:
        tests = sorted({defect.caught_by for defect in chosen})
        sound = copy.run(tests, "--tb=short")
        print(f"without a defect: {sound.passed} of the cases of {len(tests)} tests pass in {sound.seconds:.0f} s")
        if sound.failures or sound.others or not sound.passed:
            print(sound.output)
            return 1
        for defect in chosen:
            wrong, ran = tried(copy, defect)
            print(f"{ran.seconds:5.1f} s  {wrong or 'caught':<12}  {defect.name}", flush=True)
            if verbose or wrong:
                print(ran.output if wrong else "\n".join(f"         {line}" for line in ran.failures[:3]))
            if not wrong:
                seconds[defect.name] = ran.seconds
    print(f"{len(seconds)} of {len(chosen)} planted defects caught.")
    missed = {defect.name for defect in chosen} - seconds.keys()
    known = {name: at for name, at in {**noted(), **seconds}.items() if name not in missed}
    if len(known) == len(DEFECTS):
        DOCUMENT.write_text("".join(document(known)))
    return 0 if len(seconds) == len(chosen) else 1


HEAD = """<!-- Written by `make planted`. -->

# Planted defects

`make planted` proves that the tests can fail. Each row is an edit of the product (`tests/planted/`), switched on alone
in a copy of it; then the named test runs, alone, and must fail by what the defect does. Without any, all of the named
tests pass. {caught} of {all} are caught, in {minutes:.0f} minutes.

The simulation and the payment machine have defects of their own, which every `make test` looks for:
`tests/support/planted_in_simulation.py` and `tests/unit/test_payment_machine.py`.
"""


def document(seconds: dict[str, float]) -> Iterator[str]:
    yield HEAD.format(caught=len(seconds), all=len(DEFECTS), minutes=sum(seconds.values()) / 60)
    for area, defects in AREAS.items():
        yield f"\n## {area}\n\n| Defect | Rule | Caught by | Seconds |\n| --- | --- | --- | --- |\n"
        for defect in defects:
            yield f"{row(defect)} {seconds[defect.name]:.1f} |\n"


def noted() -> dict[str, float]:
    """The seconds of the runs before, of defects that are as they were; a run of a few changes their lines alone."""
    lines = DOCUMENT.read_text().splitlines() if DOCUMENT.exists() else []
    told = [line.removesuffix(" |").rpartition(" | ") for line in lines]
    known = {f"{words} |": seconds for words, _, seconds in told}
    return {defect.name: float(known[row(defect)]) for defect in DEFECTS if row(defect) in known}


def row(defect: Defect) -> str:
    """All of its line but the seconds."""
    return f"| {defect.name} | {defect.rule} | `tests/{defect.caught_by}` |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make planted", description=__doc__)
    parser.add_argument("--only", default="", help="part of a defect's name, or of its test's")
    parser.add_argument("--verbose", action="store_true", help="show how each test failed")
    arguments = parser.parse_args()
    return run(arguments.only, verbose=arguments.verbose)


if __name__ == "__main__":
    sys.exit(main())
