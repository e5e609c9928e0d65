"""What every regular expression of the product keeps."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[3] / "src"
ANYWHERE = {"search", "sub", "subn", "findall", "finditer", "split"}  # what may begin at any character of a text
_constants: Any = importlib.import_module("re._constants")
_parser: Any = importlib.import_module("re._parser")
REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)


def searched() -> Iterator[tuple[str, str | bytes]]:
    """Each pattern that is looked for anywhere in a text, with its place."""
    for file in sorted(SOURCE.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ANYWHERE):
                continue
            holder, pattern = call.func.value, None
            if isinstance(holder, ast.Name) and holder.id == "re":
                pattern = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
            elif isinstance(holder, ast.Name) and holder.id.isupper():
                name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
                pattern = getattr(getattr(importlib.import_module(name), holder.id), "pattern", None)
            if isinstance(pattern, str | bytes):
                yield f"{file.relative_to(SOURCE)}:{call.lineno}", pattern


def begins_with_endless_repeat(items: Any) -> bool:
    """Whether the pattern may take any number of characters before the first one that can be missing: a text that
    lacks that one is then read to its end from each of its characters, in the square of its length."""
    first, *rest = items or [(None, None)]
    kind, value = first
    if kind is _constants.BRANCH:
        return any(begins_with_endless_repeat([*branch, *rest]) for branch in value[1])
    if kind is _constants.SUBPATTERN:
        return begins_with_endless_repeat([*value[3], *rest])
    if kind in REPEATS:
        low, most, repeated = value
        if most is _constants.MAXREPEAT:
            return bool(rest)
        return begins_with_endless_repeat([*repeated, *rest]) or (low == 0 and begins_with_endless_repeat(rest))
    return False


def test_no_pattern_takes_the_square_of_a_text() -> None:
    found = dict(searched())
    assert found
    assert [place for place, pattern in found.items() if begins_with_endless_repeat(_parser.parse(pattern))] == []
