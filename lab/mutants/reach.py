"""What a request may reach, by names: no request can tell a mutant in what only the worker, a command or another cell
runs."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Place = tuple[int, int]  # line and column
Span = tuple[Place, Place]
REQUESTS = "entrypoints/http/api"
# Of the worker, commands, reports and other cells: what they call is not reached by it.
BESIDE = (
    *("application/upkeep", "application/reports", "application/cells"),
    *("entrypoints/cli", "entrypoints/process", "entrypoints/dev", "extensions"),
)


def unreached(source: Path) -> dict[str, list[Span]]:
    """By file below `source`, the package's folder: where each function or constant begins and ends that no request
    reaches. A public name stands for all that have it, so what a request reaches is never among them."""
    uses, defined, left = defaultdict[str, set[str]](set), list[tuple[str, set[str], ast.stmt]](), list[str]()
    for path in source.rglob("*.py"):
        file, tree = path.relative_to(source).as_posix(), ast.parse(path.read_text())
        for names, node in _definitions(tree):
            defined.append((file, names := {_known(file, name) for name in names}, node))
            for name in names if not file.startswith(BESIDE) else ():
                uses[name] |= _used(file, node)
        left += _used(file, tree) if file.startswith(REQUESTS) else ()
    reached = set[str]()
    while left:
        if (name := left.pop()) not in reached:
            reached.add(name)
            left += uses[name]
    found = defaultdict[str, list[Span]](list)
    for file, names, node in defined:
        if not names & reached:
            begins = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
            found[file].append(((begins, 0), ((node.end_lineno or 0) + 1, 0)))
    return found


def _definitions(tree: ast.Module) -> Iterator[tuple[set[str], ast.stmt]]:
    """Functions, methods and constants with their names. What a class runs by itself has the name of the class."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for name, body in [("", tree.body), *((one.name, one.body) for one in classes)]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield {name} if name and node.name.startswith("__") else {node.name}, node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                names = {
                    one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                }
                yield {name} if name else names, node


def _used(file: str, node: ast.AST) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return {
        _known(file, name) for name in names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    }


def _known(file: str, name: str) -> str:
    """A private name is one of its module alone."""
    return f"{file}: {name}" if name.startswith("_") and not name.startswith("__") else name
