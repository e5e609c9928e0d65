"""What README, CONTRIBUTING and docs/ say: paths, links, commands, settings, tests and events are those there are."""

import argparse
import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from payagg.domain.simulator import TEST_CARDS
from payagg.domain.webhook import TEST_EVENT, EventType
from payagg.entrypoints.cli.arguments import parser as the_parser
from payagg.entrypoints.cli.commands import COMMANDS
from payagg.entrypoints.http.connections import UNREAD_RATE, UNREAD_SECONDS
from payagg.entrypoints.http.middleware import BODY_SECONDS
from payagg.entrypoints.http.uvicorn_protocol import HEADER_SECONDS
from payagg.entrypoints.settings import read_settings, variables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HEADINGS = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(
    r"(?<![\w./<>:-])(?:[\w{},.-]+/)*[\w{},-]+\.(?:py|md|sql|json|toml|lock|lua|js|css|html|yaml|sh)(?![\w/]|\.\w)"
)
FOLDER = re.compile(r"`((?:[\w.-]+/)+)`")
# Written when something runs, or somebody else's.
ELSEWHERE = {"demo.json", ".payagg/demo.json", "uv.lock", "poetry.lock", "settings.json"}
MADE_BY_DEV = {".payagg/"}
# Read by tests, not by the product's settings.
OTHER_VARIABLES = {"PAYAGG_TEST_CITUS_URL", "PAYAGG_TEST_ROUNDS"}


@cache
def tree() -> list[str]:
    """Our files: no caches, no environment, no installed packages."""
    visible = {".ci", ".github"}
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if (name in visible or not name.startswith(".")) and name not in {"node_modules", "__pycache__"}
        ]
        found += ["/" + (Path(folder) / name).relative_to(ROOT).as_posix() for name in names]
    return found


@cache
def all_folders() -> set[str]:
    parents = {path.rpartition("/")[0] + "/" for path in tree()}
    return parents | {parent.as_posix() + "/" for folder in parents for parent in Path(folder).parents}


@cache
def tests() -> set[str]:
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def spelt_out(path: str) -> list[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    parts = [part.split(",") for part in re.split(r"[{}]", path)]
    return ["".join(chosen) for chosen in product(*parts)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_path_that_is_named_exists(document: Path) -> None:
    # Listings are programs of their readers, and run by tests of their own.
    text = re.sub(r"https?://\S+|^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = (re.sub(r"^(\.\./)+", "", path) for path in PATH.findall(text))  # that links lead there, the next test says
    named = {one for path in found for one in spelt_out(path)} - ELSEWHERE
    assert [one for one in sorted(named) if not any(path.endswith("/" + one) for path in tree())] == []
    folders = set(FOLDER.findall(text)) - MADE_BY_DEV
    assert [one for one in sorted(folders) if not any(path.endswith("/" + one) for path in all_folders())] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        # Addresses of the site's own pages: tests/unit/test_site.py follows them.
        if re.match(r"[a-z]+:|/docs/", link):
            continue
        target, _, anchor = link.partition("#")
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), link
        if anchor:
            headings = {
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
                for heading in HEADINGS.findall(path.read_text(encoding="utf-8"))
            }
            assert anchor in headings, link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_test_that_is_named_exists(document: Path) -> None:
    named = set(re.findall(r"`(?:tests/[\w/]+\.py::)?(test_\w+)`", document.read_text(encoding="utf-8")))
    assert named - tests() == set()


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def section(title: str) -> list[list[str]]:
    """The rows of the table under a heading of the README."""
    body = README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [cells(line) for line in body.splitlines() if line.startswith("| `")]


def commands(parser: argparse.ArgumentParser, name: str = "payagg") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield name, parser
    for group in groups:
        for word, inner in group.choices.items():
            yield from commands(inner, f"{name} {word}")


def signature(parser: argparse.ArgumentParser) -> tuple[set[str], int]:
    """Its options and the number of its plain arguments."""
    options = {option for action in parser._actions for option in action.option_strings} - {"-h", "--help"}
    return options, sum(not action.option_strings for action in parser._actions)


def test_the_commands_table_is_what_the_program_takes() -> None:
    documented = []
    for command, _ in section("Commands"):
        text = command.strip("`")
        words = re.split(r" (?=\[|--|[A-Z])", text, maxsplit=1)
        arguments = re.findall(r"(?:^| )([A-Z]+)(?= |$)", re.sub(r"--[a-z-]+ \S+", "", text.removeprefix(words[0])))
        documented.append((words[0], (set(re.findall(r"--[a-z-]+", text)), len(arguments))))
    taken = {name: signature(parser) for name, parser in commands(the_parser())}
    assert len(documented) == len(taken)
    assert dict(documented) == taken
    assert {name.split()[1] for name in taken} == set(COMMANDS)


def test_the_defaults_of_commands_are_those_of_the_program() -> None:
    defaults = {
        (name, option, str(action.default))
        for name, parser in commands(the_parser())
        for action in parser._actions
        for option in action.option_strings
        if action.default not in (None, False, argparse.SUPPRESS)
    }
    shown = {
        (re.split(r" (?=\[|--)", command.strip("`"))[0], option, value)
        for command, _ in section("Commands")
        for option, value in re.findall(r"\[(--[a-z-]+) ([0-9][^\]]*)\]", command)
    }
    assert shown == defaults


def test_every_setting_has_the_default_that_is_documented() -> None:
    unset = read_settings({})
    for name, one in variables().items():
        if name.endswith("_FILE"):
            continue
        if one.metadata["default"] is not None:
            assert read_settings({name: one.metadata["default"]}) == unset, name
        else:
            assert one.metadata["unset"].startswith("none"), name
            assert getattr(unset, one.name) in (None, ()), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_variable_that_is_named_is_read(document: Path) -> None:
    named = set(re.findall(r"\bPAYAGG_[A-Z_]*[A-Z]\b", document.read_text(encoding="utf-8")))
    assert named - set(variables()) - OTHER_VARIABLES == set()


def test_every_target_that_is_named_is_one_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
        assert named - targets == set(), document.name


def test_the_merchants_document_lists_every_event() -> None:
    text = (ROOT / "docs" / "verifying-webhooks.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", text, re.MULTILINE)
    assert listed == [*(kind.value for kind in EventType), TEST_EVENT]


def test_the_tour_lists_every_test_card() -> None:
    shown = re.findall(r"^ +\| `([0-9 ]+)` \|", README, re.MULTILINE)
    assert [number.replace(" ", "") for number in shown] == list(TEST_CARDS)


def test_slow_clients_are_given_up_when_the_readme_says() -> None:
    (told,) = re.findall(
        r"headers must arrive within (\d+) s, its body within another (\d+) s, and a client that reads less\s+"
        r"than (\d+) bytes a second of an answer is given up after (\d+) s",
        README,
    )
    assert tuple(map(float, told)) == (HEADER_SECONDS, BODY_SECONDS, UNREAD_RATE, UNREAD_SECONDS)
