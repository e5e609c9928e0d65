"""The oldest browsers that the hosted page promises to work in: what its files may ask of them."""

import re
import subprocess

import pytest

from payagg.entrypoints.http.checkout_page.markup import ASSETS, GUARD, STYLE
from tests.support.machine import NODE, node_package, program

SCRIPTS = sorted(name for name in ASSETS.files if name.endswith(".js"))
# Style rules that Chrome 80 or Safari 13 drops, where dropping them would change more than an ornament.
TOO_NEW = {
    "Safari 13.1": ("clamp(", "min("),
    "Chrome 87": ("inset-", "padding-inline", "margin-inline"),
    "Chrome 88": (":is(", ":where(", ":not(.ready, ", "aspect-ratio"),
    "Chrome 99 to 120": ("@layer", "@media (width", ":has(", "@container", "dvh", "color-mix", "&"),
}


def faults_of(script: str, version: int, kind: str) -> str:
    """What acorn says of the script; empty when it parses."""
    node_package("acorn")
    command = [program("node"), str(NODE / "parse.js"), str(version), kind]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_ecmascript_2019(name: str) -> None:
    assert faults_of(ASSETS.files[name].decode(), 2019, "module") == ""


def test_the_guard_is_ecmascript_3() -> None:
    assert faults_of(GUARD, 3, "script") == ""


def test_the_style_sheet_asks_for_nothing_newer() -> None:
    rules = re.sub(r"/\*.*?\*/", "", STYLE, flags=re.DOTALL)
    assert [(since, words) for since, all_of in TOO_NEW.items() for words in all_of if words in rules] == []


def test_gaps_stand_in_grids_alone() -> None:
    """Safari 13 knows no gap between flex items."""
    blocks = re.findall(r"\{([^{}]*)\}", STYLE)
    assert [block for block in blocks if "flex" in block] == []
