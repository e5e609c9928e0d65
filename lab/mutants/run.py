"""Changes one place of the money's code at a time, by Cosmic Ray's operators, and runs the unit tests, its module's first.

A mutant survives when they all pass. KILLED of the sample must be killed, and EXPLAINED tells why of each survivor.
"""

import argparse
import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from lab.kit.figures import RunSummary
from lab.kit.product_copy import Copy, a_copy, place
from lab.mutants.modules import EXPLAINED, MODULES

Place = tuple[int, int]  # line and column
# `is` stands before None and members of an enumeration, of which there is one each: the same, said otherwise.
SAME = {"core/ReplaceComparisonOperator_Is_Eq", "core/ReplaceComparisonOperator_IsNot_NotEq"}


@dataclass(frozen=True)
class Mutant:
    """One change of one place. `before` and `after`: the changed lines, without their indentation."""

    file: str
    line: int
    before: str
    after: str
    text: str  # of the whole module


def drawn(path: Path, file: str, most: int, seed: int) -> list[Mutant]:
    """Up to `most` mutants of `file`, which is at `path`, by lot: first places, then one change of each place."""
    chance = random.Random(f"{seed} {file}")
    code = path.read_text()
    places = sorted(_places(code).items())
    chance.shuffle(places)
    mutants = (_mutant(file, code, place[0], *chance.choice(sorted(changes))) for place, changes in places)
    # What is no Python any more would be killed by anything.
    return sorted(islice(filter(_is_python, mutants), most or None), key=lambda mutant: mutant.line)


def _places(code: str) -> dict[tuple[Place, str], list[tuple[str, int]]]:
    """What can be changed, by place and kind of change: the operator, and which of its occurrences."""
    passed_over = list(_passed_over(code))
    nodes = list(ast_nodes(get_ast(code)))
    found: dict[tuple[Place, str], list[tuple[str, int]]] = defaultdict(list)
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments() or name in SAME:
            continue
        operator = operator_class()
        starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(starts):
            if not any(begin <= start < end for begin, end in passed_over):
                found[start, name.partition("_")[0]].append((name, occurrence))
    return found


def _passed_over(code: str) -> Iterator[tuple[Place, Place]]:
    """Where types are written, which are the type checker's to judge and no arithmetic; and what makes a data class."""
    for node in ast.walk(ast.parse(code)):
        written = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.ClassDef):
            written += node.decorator_list
        if isinstance(node, ast.arguments) and node.kwonlyargs:  # the star before them is no product
            first = node.kwonlyargs[0]
            yield (first.lineno, max(0, first.col_offset - 3)), (first.lineno, first.col_offset)
        if isinstance(node, ast.keyword) and node.arg == "init":
            written.append(node.value)
        for one in written:
            if isinstance(one, ast.expr):
                yield (one.lineno, max(0, one.col_offset - 1)), (one.end_lineno or 0, one.end_col_offset or 0)


def _is_python(mutant: Mutant) -> bool:
    try:
        ast.parse(mutant.text)
    except SyntaxError:
        return False
    return True


def _mutant(file: str, code: str, at: Place, name: str, occurrence: int) -> Mutant:
    text = mutate_code(code, get_operator(name)(), occurrence)
    assert text is not None, f"{file}:{at}: {name} changes nothing"
    told = [line for line in difflib.ndiff(code.splitlines(), text.splitlines()) if line[:1] in "+-"]
    before = " ".join(line[2:].strip() for line in told if line[0] == "-")
    after = " ".join(line[2:].strip() for line in told if line[0] == "+")
    return Mutant(file, at[0], before.strip(), after.strip(), text)


EACH, SEED = 6, 1  # the usual sample
KILLED = 0.9
TEST_SECONDS = 300.0  # an end for tests that a mutant stops
TESTS = ("unit/domain", "unit/application", "unit/extensions")
STABLE = ("-x", "--hypothesis-seed=0")


def is_killed(copy: Copy, mutant: Mutant) -> bool:
    """Whether the module's own tests notice it, or else the others."""
    own = Path("unit", mutant.file)
    own = own.with_name(f"test_{own.name}")
    with copy.planted({mutant.file: mutant.text}):
        first = (copy.folder / "tests" / own).exists() and is_noticed(copy, [str(own)])
        return first or is_noticed(copy, TESTS)


def is_noticed(copy: Copy, tests: Sequence[str]) -> bool:
    """Whether a test fails, breaks or never ends."""
    try:
        ran = copy.run(tests, *STABLE, timeout=TEST_SECONDS)
    except TimeoutError:
        return True
    return bool(ran.failures) or not ran.passed or "error" in ran.output.splitlines()[-1]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab mutants", description=__doc__)
    parser.add_argument("--only", default="", help="part of a module's name, as checkout")
    parser.add_argument("--each", type=int, default=EACH, help=f"places of each module, 0 for all ({EACH})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the lot ({SEED})")
    chosen = parser.parse_args(arguments)
    tally, tried, killed = RunSummary("mutants", arguments), 0, 0
    with a_copy() as copy:
        sound = copy.run(TESTS, *STABLE)
        if sound.failures or not sound.passed:
            raise SystemExit(f"The tests fail without a mutant\n{sound.output}")
        for file in MODULES:
            if chosen.only not in file:
                continue
            mutants = drawn(place(copy.folder, file), file, chosen.each, chosen.seed)
            survivors = [one for one in mutants if not is_killed(copy, one)]
            tried, killed = tried + len(mutants), killed + len(mutants) - len(survivors)
            why = {one: EXPLAINED.get((one.file, one.before)) for one in survivors}
            for one in survivors:
                print(f"        {one.file}:{one.line} survives: {why[one] or 'not explained'}")
                print(f"    - {one.before}\n    + {one.after}")
            bare = [f"line {one.line} survives, and nobody says why" for one in survivors if why[one] is None]
            tally.line(f"{file}: {len(mutants) - len(survivors)} of {len(mutants)} killed", bare)
    tally.line(f"{killed} of {tried} killed", ["too few"] * (killed < KILLED * tried))
    return tally.end(whole=(chosen.only, chosen.each, chosen.seed) == ("", EACH, SEED), killed=killed, mutants=tried)
