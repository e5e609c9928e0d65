"""The mutants of a module, made by Cosmic Ray's operators."""

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

Place = tuple[int, int]
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


def drawn(source: Path, file: str, most: int, seed: int) -> list[Mutant]:
    """Up to `most` mutants of `file` (below `source`), by lot: first places, then one change of each place."""
    chance = random.Random(f"{seed} {file}")
    code = (source / file).read_text()
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
    return Mutant(file, at[0], before, after, text)
