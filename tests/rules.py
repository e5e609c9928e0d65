"""The rules in `rules.toml`, the tests that carry their markers, and the page that shows both: docs/rules.md."""

import ast
import importlib
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from litestar.handlers import HTTPRouteHandler

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http import api
from payagg.entrypoints.http.app import DEFAULTS, api_routes
from payagg.entrypoints.http.server.routing import Routes
from tests.support.extensions import is_removed
from tools.openapi.operations import routes_of

TESTS = Path(__file__).parent
INTRO = """# Rules

What the interface promises, and what was decided where it is silent. Below each rule: the code that keeps it, below
`src/payagg`, and the tests that carry its marker, below `tests`. `make test ARGS="--rule payments.2"` runs them. Every
route and every error code is a rule as well: `--rule "GET /payments"`, `--rule PAYMENT_EXPIRED`. `tests/rules.toml` is
the source."""


def sentences() -> dict[str, dict[str, str]]:
    """`says` and, where one place keeps it, `code` of each rule, by its id ("payments.2"); `extension` where it is
    tested with one. Without those of removed extensions."""
    sections = tomllib.loads((TESTS / "rules.toml").read_text(encoding="utf-8"))
    rules = {f"{section}.{number}": rule for section, rules in sections.items() for number, rule in rules.items()}
    return {id: rule for id, rule in rules.items() if not is_removed(rule.get("extension", rule.get("code", "")))}


def operations() -> list[str]:
    return [f"{route.method.upper()} {route.path}" for route in routes_of(api_routes())]


def known() -> list[str]:
    """What a marker may name."""
    return [*operations(), *(code.name for code in ErrorCode), *sentences()]


def proofs() -> dict[str, list[str]]:
    """The whole names of the tests that carry each id."""
    found: dict[str, list[str]] = {}
    for file in sorted([*TESTS.rglob("test_*.py"), *TESTS.glob("contracts/*.py")]):
        if "node_modules" not in file.parts:
            for rule, test in _markers(ast.parse(file.read_text(encoding="utf-8")), ""):
                found.setdefault(rule, []).append(f"{file.relative_to(TESTS.parent).as_posix()}::{test}")
    return found


def _markers(node: Any, outer: str) -> Iterator[tuple[str, str]]:
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield from _markers(inner, f"{outer}{inner.name}::")
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in inner.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
                    yield from ((ast.literal_eval(argument), outer + inner.name) for argument in decorator.args)


def page() -> str:
    """The document without its first line, which says who generated it."""
    tests, rules, parts = proofs(), sentences(), [INTRO]
    code = {rule: entry["code"] for rule, entry in rules.items() if "code" in entry}
    for section in dict.fromkeys(rule.partition(".")[0] for rule in rules):
        says = {rule: f"{rule}: {entry['says']}" for rule, entry in rules.items() if rule.startswith(f"{section}.")}
        parts.append(_section(section.replace("-", " ").capitalize(), says, code, tests))
    return "\n\n".join(parts) + "\n"


def _section(title: str, says: Mapping[str, str], code: Mapping[str, str], tests: Mapping[str, list[str]]) -> str:
    lines = [f"## {title}\n"]
    for rule, sentence in says.items():
        places = [code[rule]] if rule in code else []
        proofs = [test.removeprefix("tests/") for test in tests.get(rule, ())]
        lines.append(f"- {sentence}\n  {', '.join(f'`{place}`' for place in places + proofs)}")
    return "\n".join(lines)


def handlers() -> dict[str, str]:
    """Where each operation's handler stands; what a module makes (for each deployment or audience) stands under the
    function that makes it."""
    found = {}
    for module in pkgutil.iter_modules(api.__path__, f"{api.__name__}."):
        file = module.name.removeprefix("payagg.").replace(".", "/") + ".py"
        standing = vars(importlib.import_module(module.name))
        named = {id(value): name for name, value in standing.items() if isinstance(value, HTTPRouteHandler)}
        made = [value for value in standing.values() if isinstance(value, Routes)]
        if "routes" in standing:
            made.append(standing["routes"])
        elif "routes_for" in standing:
            made.append(standing["routes_for"](DEFAULTS))
        for handler in chain.from_iterable(made):
            for route in routes_of([handler]):
                place = named.get(id(handler), "routes_for")
                found[f"{route.method.upper()} {route.path}"] = f"{file}::{place}"
    return found
