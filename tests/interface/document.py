"""docs/rules.md: every route, code, limit and rule, the code that keeps it, and the whole names of its tests."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence

from litestar.handlers import HTTPRouteHandler

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http import routes
from payagg.entrypoints.http.app import DEFAULTS
from payagg.entrypoints.http.openapi.operations import routes_of
from tests.interface.code import CODE
from tests.interface.limits import LIMIT_ROWS
from tests.interface.rules import RULES
from tests.interface.table import ERROR_CODES, ROUTES, Row

INTRO = """# Rules

What the interface promises, and what was decided where it is silent: the code that keeps it and the tests that prove
it. Code is named below `src/payagg`; a rule without one is kept by several parts together. A test's whole name finds it
(`pytest tests/unit/test_gateways.py::test_a_new_gateway_is_disabled_and_listed`), and `tests/interface/test_table.py`
proves that each exists."""


def rules() -> str:
    """The document without its first line, which says who generated it."""
    sections = (
        ("Routes", ROUTES, handlers()),
        ("Error codes", ERROR_CODES, {code.name: "domain/errors.py::ErrorCode" for code in ErrorCode}),
        ("Limits", LIMIT_ROWS, CODE),
        ("Rules", RULES, CODE),
    )
    return "\n\n".join([INTRO, *(_section(*section) for section in sections)]) + "\n"


def _section(title: str, rows: Sequence[Row], code: Mapping[str, str]) -> str:
    lines = [f"## {title}", "", "| Rule | Code | Tests |", "| --- | --- | --- |"]
    for row in rows:
        place = code.get(row.says)
        tests = "<br>".join(f"`{test}`" for test in row.tests)
        lines.append(f"| {row.says} | {f'`{place}`' if place else ''} | {tests} |")
    return "\n".join(lines)


def handlers() -> dict[str, str]:
    """Where each operation's handler stands; what a module makes for each deployment stands under the function that
    makes it."""
    found = {}
    for module in pkgutil.iter_modules(routes.__path__, f"{routes.__name__}."):
        file = module.name.removeprefix("payagg.").replace(".", "/") + ".py"
        standing = vars(importlib.import_module(module.name))
        named = {id(value): name for name, value in standing.items() if isinstance(value, HTTPRouteHandler)}
        made = standing["routes"] if "routes" in standing else standing["routes_for"](DEFAULTS)
        for handler in made:
            for route in routes_of([handler]):
                place = named.get(id(handler), "routes_for")
                found[f"{route.method.upper()} {route.path}"] = f"{file}::{place}"
    return found
