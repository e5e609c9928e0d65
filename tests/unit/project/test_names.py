"""Names and words of the source: CONTRIBUTING's style, as far as a machine can tell."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Participles that do not end in -ed, and verbs that do.
IRREGULAR = re.compile(
    "begun|bought|brought|built|caught|chosen|done|drawn|driven|felt|found|given|gone|heard|held|hidden|kept|known|led|"
    "left|made|meant|met|paid|seen|sent|shown|sold|spoken|thought|thrown|told|torn|won|written"
)
VERBS = frozenset({"embed", "feed", "need", "proceed", "seed"})
LONGEST = 80  # characters of a test's name


def _is_participle(name: str) -> bool:
    word = name.strip("_")
    return bool(IRREGULAR.fullmatch(word)) or (word.endswith("ed") and "_" not in word and word not in VERBS)


def _functions(*folders: str) -> list[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    trees = [(file.relative_to(ROOT), ast.parse(file.read_text(encoding="utf-8"))) for file in files]
    return [(file, node) for file, tree in trees for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


def test_no_function_is_named_by_a_participle_alone() -> None:
    assert _is_participle("_listed")
    properties = ("property", "cached_property")
    found = [
        f"{file}: {node.name}"
        for file, node in _functions("src", "testing")
        if _is_participle(node.name) and not any(ast.unparse(one) in properties for one in node.decorator_list)
    ]
    assert found == []


def test_the_name_of_a_test_is_a_sentence_of_at_most_80_characters() -> None:
    found = [f"{file}: {node.name}" for file, node in _functions("tests") if len(node.name) > LONGEST]
    assert [one for one in found if ": test_" in one] == []
