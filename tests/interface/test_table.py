"""The table is whole, both ways, and every test it names exists."""

import ast
from collections import Counter
from pathlib import Path

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.openapi.operations import routes_of
from tests.interface.limits import LIMIT_ROWS
from tests.interface.rules import RULES
from tests.interface.table import ERROR_CODES, ROUTES, Row

ROOT = Path(__file__).parents[2]
EVERY = (*ROUTES, *ERROR_CODES, *LIMIT_ROWS, *RULES)


def named_in(file: Path) -> set[str]:
    """The tests that pytest collects from `file`, at any depth of classes."""
    tree = ast.parse(file.read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_route_of_the_app_is_in_the_table_and_the_reverse() -> None:
    routed = {f"{route.method.upper()} {route.path}" for route in routes_of(api_routes())}
    assert {row.says for row in ROUTES} == routed


def test_every_code_of_the_catalogue_is_in_the_table_and_the_reverse() -> None:
    assert {row.says for row in ERROR_CODES} == {code.name for code in ErrorCode}


def test_no_row_stands_twice_or_without_a_test() -> None:
    assert [says for says, times in Counter(row.says for row in EVERY).items() if times > 1] == []
    assert [row.says for row in EVERY if not row.tests] == []


def test_every_named_test_exists() -> None:
    known: dict[str, set[str]] = {}

    def missing(row: Row) -> list[str]:
        absent = []
        for test in row.tests:
            place, _, name = test.partition("::")
            if place not in known:
                file = ROOT / place
                known[place] = named_in(file) if file.exists() else set()
            if name not in known[place]:
                absent.append(f"{row.says}: {test}")
        return absent

    assert [line for row in EVERY for line in missing(row)] == []
