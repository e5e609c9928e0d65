"""The oldest browsers that the hosted page promises to work in: what its files may ask of them."""

import subprocess

import pytest

from payagg.entrypoints.http.checkout_page.markup import ASSETS, GUARD
from tests.support.machine import NODE, node_package, program

SCRIPTS = sorted(name for name in ASSETS if name.endswith(".js"))


def faults_of(script: str, version: int, kind: str) -> str:
    """What acorn says of the script; empty when it parses."""
    node_package("acorn")
    command = [program("node"), str(NODE / "parse.js"), str(version), kind]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_ecmascript_2019(name: str) -> None:
    assert faults_of(ASSETS[name].decode(), 2019, "module") == ""


def test_the_guard_is_ecmascript_3() -> None:
    assert faults_of(GUARD, 3, "script") == ""
