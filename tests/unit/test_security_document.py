"""docs/security.md names tests, and every one of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/security.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts]
    there = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))}
    shipped = (ROOT / "src/payagg/testing/contracts").glob("*.py")
    there |= {name for path in shipped for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))}
    named = set(re.findall(r"`(test_\w+)`", DOCUMENT))
    assert len(named) > 40
    assert named - there == set()


def test_every_threat_has_a_cure_and_a_test() -> None:
    threats = DOCUMENT.partition("## Beside OWASP's API")[0]
    rows = [line for line in threats.splitlines() if line.startswith("| ") and not line.startswith("| Threat")]
    assert len(rows) > 20
    assert [row for row in rows if row.count("|") != 4 or "`test_" not in row.split("|")[3]] == []
