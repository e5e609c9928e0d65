"""docs/rules.md names what exists: rows of the table, places in the product, and whole tests."""

import ast
import re
from pathlib import Path

import pytest

from tests.interface.code import CODE
from tests.interface.document import handlers, rules
from tests.interface.limits import LIMIT_ROWS
from tests.interface.rules import RULES
from tests.interface.table import ERROR_CODES, ROUTES

PRODUCT = Path(__file__).parents[2] / "src" / "payagg"


def names_in(file: Path) -> set[str]:
    """What a module defines at its top, and `Class.name` for what stands in its classes."""

    def defined(nodes: list[ast.stmt]) -> set[str]:
        found = set()
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found.add(node.name)
                case ast.ClassDef():
                    found |= {node.name, *(f"{node.name}.{inner}" for inner in defined(node.body))}
                case ast.Assign():
                    found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
                case ast.AnnAssign(target=ast.Name(id=name)):
                    found.add(name)
        return found

    return defined(ast.parse(file.read_text()).body)


@pytest.mark.parametrize("place", sorted({*CODE.values(), *handlers().values()}))
def test_every_place_is_in_the_product(place: str) -> None:
    path, _, name = place.partition("::")
    assert (PRODUCT / path).is_file(), path
    assert name in names_in(PRODUCT / path), place


def test_code_is_named_for_rows_that_exist() -> None:
    assert set(CODE) - {row.says for row in (*LIMIT_ROWS, *RULES)} == set()


def test_every_route_has_its_handler() -> None:
    assert set(handlers()) == {row.says for row in ROUTES}


def test_every_row_and_every_whole_test_name_is_in_the_document() -> None:
    text = rules()
    for row in (*ROUTES, *ERROR_CODES, *LIMIT_ROWS, *RULES):
        line = next(line for line in text.splitlines() if line.startswith(f"| {row.says} | "))
        assert re.findall(r"`(tests/[\w/]+\.py(?:::\w+)*::test_\w+)`", line) == list(row.tests)
