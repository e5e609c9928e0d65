"""Every route, code and rule has a test that carries its marker, and every marker names one of them."""

import ast
from functools import cache

from tests.rules import handlers, known, operations, proofs, sentences
from tests.support.machine import ROOT

PRODUCT = ROOT / "src" / "payagg"


@cache
def names_in(path: str) -> set[str]:
    """What a module of the product defines at its top, and `Class.name` for what stands in its classes."""
    return set(_names(ast.parse((PRODUCT / path).read_text()).body))


def _names(nodes: list[ast.stmt]) -> list[str]:
    found = []
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.append(name)
            case ast.ClassDef(name=name):
                found += [name, *(f"{name}.{inner}" for inner in _names(node.body))]
            case ast.Assign():
                found += [target.id for target in node.targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.append(name)
    return found


def test_every_rule_has_a_test_and_every_marker_a_rule() -> None:
    assert set(proofs()) == set(known())


def test_every_route_has_its_handler() -> None:
    assert set(handlers()) == set(operations())


def test_every_place_is_in_the_product() -> None:
    places = {*(rule["code"] for rule in sentences().values() if "code" in rule), *handlers().values()}
    split = [place.partition("::") for place in sorted(places)]
    assert [path for path, _, _ in split if not (PRODUCT / path).is_file()] == []
    assert [f"{path}::{name}" for path, _, name in split if name and name not in names_in(path)] == []
