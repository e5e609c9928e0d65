"""docs/architecture.md draws the imports and the crash points that the code has."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "src" / "payagg"
DRAWN = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FLOORS = {"entrypoints", "adapters", "application", "domain", "testing"}


def drawing(kind: str) -> str:
    """The one mermaid block of this kind."""
    (found,) = re.findall(rf"```mermaid\n{kind}(.*?)```", DRAWN, re.DOTALL)
    return str(found)


def imported(file: Path) -> set[str]:
    """The floors that a module imports from, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("payagg.")}


def test_the_arrows_between_floors_are_the_imports_there_are() -> None:
    arrows = set(re.findall(r"(\w+) --> (\w+)", drawing("flowchart TD")))
    imports = {
        (floor, other)
        for floor in FLOORS
        for file in (PRODUCT / floor).rglob("*.py")
        for other in imported(file) & FLOORS - {floor}
    }
    assert arrows == imports


def test_every_crash_point_is_drawn_and_the_reverse() -> None:
    points = {
        label for file in PRODUCT.rglob("*.py") for label in re.findall(r'crash_point\("(\w+)"\)', file.read_text())
    }
    # The worker's are in the tests' own queue and sender, around the product's.
    points |= set(re.findall(r'_step\("(\w+)"\)', (ROOT / "tests" / "support" / "delivering.py").read_text()))
    assert set(re.findall(r"Note over \w+: (\w+)\n", drawing("sequenceDiagram"))) == points
    left = re.findall(r"^\| ([\w, ]+) \| [^|]+ \| [^|]+ \|$", DRAWN.partition("Killed at")[2], re.MULTILINE)
    assert {label for row in left for label in row.split(", ")} == points
