"""Dependencies: each is bounded below and above, locked, and of a licence that it may be shipped under."""

import re
import tomllib
from collections import defaultdict
from functools import cache
from importlib.metadata import metadata

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.version import Version

import payagg
from tests.support.machine import ROOT
from tests.unit.extras import brought_by
from tools.lock import LEFT_OUT, LOCKS


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
        about = metadata(name)
        classifiers = [one.split(" :: ")[-1] for one in about.get_all("Classifier", []) if one.startswith("License")]
        [text] = about.get_all("License", [""])
        said = about.get_all("License-Expression") or classifiers or [text.partition("\n")[0]]
        words = [word for one in said for word in re.split(r" AND | OR ", one.removesuffix(" License"))]
        if not all(PERMITTED.fullmatch(word) for word in words):
            refused[name] = said
    assert refused == {}
