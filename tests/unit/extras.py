"""What each extra of the package brings, and a Python that has that alone."""

import os
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.machine import ROOT
from tests.support.processes import environment

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
