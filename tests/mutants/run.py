"""`make mutants`: changes one place of the money's code at a time and runs the unit tests of that module.

A mutant survives when they all pass. Exit status 1 when fewer than KILLED of the sample are killed, or a survivor is
not explained in `explained.py`. docs/mutants.md tells of the usual sample.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.mutants.explained import EXPLAINED
from tests.mutants.modules import MODULES
from tests.mutants.mutants import Mutant, drawn
from tests.support.product_copy import ROOT, Copy, a_copy

DOCUMENT = ROOT / "docs" / "mutants.md"
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


def run(only: str, each: int, seed: int) -> int:
    began = time.monotonic()
    tried: Counter[str] = Counter()
    survivors: list[Mutant] = []
    with a_copy() as copy:
        for file, tests in MODULES.items():
            if only not in file:
                continue
            sound = copy.run(tests, *STABLE)
            if sound.failures or not sound.passed:
                print(f"{file}: its tests fail without a mutant\n{sound.output}")
                return 1
            for mutant in drawn(copy.source, file, each, seed):
                tried[file] += 1
                if not is_killed(copy, mutant, tests):
                    survivors.append(mutant)
                    print(
                        f"survives  {mutant.file}:{mutant.line}\n    - {mutant.before}\n    + {mutant.after}",
                        flush=True,
                    )
            left = sum(one.file == file for one in survivors)
            print(f"{file}: {tried[file] - left} of {tried[file]} killed", flush=True)
    killed = tried.total() - len(survivors)
    minutes = (time.monotonic() - began) / 60
    share = killed / tried.total()
    print(f"{killed} of {tried.total()} mutants killed ({share:.0%}) in {minutes:.0f} minutes, seed {seed}.")
    bare = [one for one in survivors if why(one) is None]
    for one in bare:
        print(f"not explained: {one.file}:{one.line}: {one.before} -> {one.after}")
    if (each, seed) == (EACH, SEED):
        sections = {**noted(), **{file: section(file, tried[file], survivors) for file in tried}}
        DOCUMENT.write_text(document([sections[file] for file in MODULES if file in sections]))
    return 0 if killed >= KILLED * tried.total() and not bare else 1


def why(mutant: Mutant) -> str | None:
    """Why no test notices it, None where nobody has said so."""
    return EXPLAINED.get((mutant.file, mutant.before))


HEAD = """<!-- Written by `make mutants`. -->

# Mutants

`make mutants` changes one place of the code that decides about money at a time, by Cosmic Ray's operators, and runs the
unit tests of its module (`tests/mutants/modules.py`); nothing else of the tests counts here. A mutant that no test
notices survives, and stands here with its reason. {killed} of {tried} are killed ({share:.0%}): {each} places of each
module, drawn with seed {seed}. `make mutants ARGS="--seed 7"` draws others, `ARGS="--each 0"` takes all. Why so:
[0911](decisions/0911-mutation-testing.md).

"""
SECTION = re.compile(r"^## `(.+)`: ([0-9]+) of ([0-9]+)$", re.MULTILINE)


def section(file: str, tried: int, survivors: Sequence[Mutant]) -> str:
    """What the document says of one module."""
    own = [one for one in survivors if one.file == file]
    told = [f"{why(one) or 'not explained'}:\n\n```diff\n- {one.before}\n+ {one.after}\n```\n" for one in own]
    return "\n".join([f"## `{file}`: {tried - len(own)} of {tried}\n", *told])


def noted() -> dict[str, str]:
    """The sections of the document as it is; a run of a few modules changes theirs alone."""
    text = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    found = list(SECTION.finditer(text))
    ends = [*(one.start() for one in found[1:]), *([len(text)] if found else [])]
    return {one[1]: text[one.start() : end].rstrip() + "\n" for one, end in zip(found, ends, strict=True)}


def document(sections: Sequence[str]) -> str:
    text = "\n".join(sections)
    killed, tried = (sum(int(one[group]) for one in SECTION.finditer(text)) for group in (2, 3))
    return HEAD.format(killed=killed, tried=tried, share=killed / tried, each=EACH, seed=SEED) + text


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", default="", help="part of a module's name, as checkout")
    parser.add_argument("--each", type=int, default=EACH, help="places of each module; 0 for all")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    return run(arguments.only, arguments.each, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
