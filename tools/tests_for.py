"""`python tools/tests_for.py FILE`: the test files that belong to a file of the source, one a line.

Its own test stands at the mirrored path (`src/payagg/domain/report.py`: `tests/unit/domain/test_report.py`), others
have its name over Postgres or HTTP, or are unit tests that import it. A file without any belongs to the tests of its
folder; a template, a script or a style sheet to all tests that import its package or have its name; a document or a
setting to those of the project.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
SOURCES = {"src": 1, "testing": 1, "lab": 0, "benchmarks": 0, "tests": 0}  # folder: the parts that no module's name has


def tests_for(file: str) -> list[str]:
    """Paths below the project, sorted. Raises FileNotFoundError where there is no such file."""
    path = (ROOT / file).resolve()
    if not path.is_file():
        raise FileNotFoundError(file)
    is_code = path.suffix == ".py"
    if not is_code:
        path = next((one / "__init__.py" for one in path.parents if (one / "__init__.py").is_file()), path)
    parts = path.relative_to(ROOT).parts
    if path.name.startswith("test_"):
        return ["/".join(parts)]
    if path.suffix != ".py" or parts[0] not in SOURCES:
        return ["tests/unit/project"]
    inner = parts[SOURCES[parts[0]] :]
    module = ".".join(inner).removesuffix(".py").removesuffix(".__init__")
    package, _, name = module.rpartition(".")
    imports = re.compile(
        rf"^\s*(?:(?:from|import) {re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b)", re.MULTILINE
    )
    everything = [one for one in TESTS.rglob("test_*.py") if "node_modules" not in one.parts]
    units = [one for one in everything if one.is_relative_to(TESTS / "unit")]
    found = {one for one in everything if one.name == f"test_{path.stem}.py"}
    found |= {one for one in (units if is_code else everything) if imports.search(one.read_text("utf-8"))}
    if not is_code:
        found |= set((TESTS / "integration").rglob(f"{path.parent.name}/test_*.py"))
    folders = inner[1:-1]
    while not found and folders:
        found = set((TESTS / "unit").joinpath(*folders).rglob("test_*.py"))
        found |= set((TESTS / "integration").rglob(f"{folders[-1]}/test_*.py"))
        folders = folders[:-1]
    return sorted(one.relative_to(ROOT).as_posix() for one in found)


if __name__ == "__main__":
    try:
        sys.stdout.write("\n".join(tests_for(sys.argv[1])) + "\n")
    except (IndexError, FileNotFoundError):
        sys.exit("Name a file of the project: make test-for FILE=src/payagg/domain/report.py")
