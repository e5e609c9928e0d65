"""What README, CONTRIBUTING and docs/ say: paths, links, commands, settings, tests and events are those there are."""

import os
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from payagg.domain.simulator import TEST_CARDS
from payagg.entrypoints.settings import read_settings, variables
from tests.support.extensions import REMOVED
from tests.support.machine import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(
    r"(?<![\w./<>:-])(?:[\w{},.-]+/)*[\w{},-]+\.(?:py|md|sql|json|toml|lock|lua|js|css|html|yaml|sh)(?![\w/]|\.\w)"
)
# Written when something runs, or somebody else's.
ELSEWHERE = {"demo.json", ".payagg/demo.json", "uv.lock", "poetry.lock", "settings.json", ".payagg/"}
# Read by tests, not by the product's settings.
OTHER_VARIABLES = {"PAYAGG_TEST_ROUNDS", "PAYAGG_TEST_POSTGRES"}
each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


@cache
def there() -> set[str]:
    """Each file and folder of ours under every name that tells it: `docs/a.md`, and `a.md`; a folder ends with `/`."""
    whole = set()
    for folder, folders, names in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".")} - {".ci", ".github"}
        folders[:] = {*folders} - hidden - {"node_modules", "__pycache__"}
        place = Path(folder).relative_to(ROOT).as_posix()
        whole |= {f"{place}/", *(f"{place}/{name}" for name in names)}
    return {path.split("/", skipped)[-1] for path in whole for skipped in range(path.count("/") + 1)}


@cache
def names_of_tests() -> set[str]:
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts]
    return {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))}


def spelt_out(path: str) -> list[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    parts = [part.split(",") for part in re.split(r"[{}]", path)]
    return ["".join(chosen) for chosen in product(*parts)]


@pytest.mark.skipif(bool(REMOVED), reason=f"documents tell of {', '.join(sorted(REMOVED))}")
@each_document
def test_every_path_test_variable_and_target_that_is_named_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    # Listings are programs of their readers, and run by tests of their own.
    prose = re.sub(r"https?://\S+|^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = (re.sub(r"^(\.\./)+", "", path) for path in PATH.findall(prose))  # the next test follows links
    named = {one for path in found for one in spelt_out(path)} | set(re.findall(r"`((?:[\w.-]+/)+)`", prose))
    assert named - ELSEWHERE - there() == set()
    assert set(re.findall(r"`(?:tests/[\w/]+\.py::)?(test_\w+)`", text)) - names_of_tests() == set()
    variables_read = {*variables(), *OTHER_VARIABLES}
    assert set(re.findall(r"\bPAYAGG_[A-Z_]*[A-Z]\b", text)) - variables_read == set()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) - targets == set()


@each_document
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        # Addresses of the site's own pages: tests/unit/entrypoints/http/docs/test_site.py follows them.
        if re.match(r"[a-z]+:|/docs/", link):
            continue
        target, _, anchor = link.partition("#")
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, link


def test_every_setting_has_the_default_that_is_documented() -> None:
    unset = read_settings({})
    for name, one in variables().items():
        if name.endswith("_FILE"):
            continue
        if one.metadata["default"] is not None:
            assert read_settings({name: one.metadata["default"]}) == unset, name
        else:
            assert one.metadata["unset"].startswith("none"), name
            owner = next(some for some in (unset, *unset.own) if hasattr(some, one.name))
            assert getattr(owner, one.name) in (None, ()), name


def test_the_guide_lists_every_test_card() -> None:
    text = (ROOT / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `([0-9 ]+)` \|", text, re.MULTILINE)
    assert [number.replace(" ", "") for number in shown] == list(TEST_CARDS)
