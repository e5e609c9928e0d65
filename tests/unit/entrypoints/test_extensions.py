"""An installation without an extension loads nothing of it, and knows none of its routes, settings and commands."""

import json
import subprocess
import sys
from typing import Any

import pytest

from payagg.entrypoints.cli.arguments import parser
from payagg.entrypoints.extensions import NAMES
from payagg.entrypoints.settings import SettingsError, read_settings
from tests.support.extensions import DESCRIBED
from tests.support.machine import ROOT

# In a process of its own: the tests around have loaded every extension.
PROGRAM = """
import json, os, sys
from payagg_testing.memory import MemoryStore
from payagg.entrypoints.cli import commands
from payagg.entrypoints.cli.arguments import parser
from payagg.entrypoints.extensions import names_in
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.settings import read_settings
from litestar.testing import TestClient
from tests.support.assembly import services_over, SETTINGS
from dataclasses import replace

settings = replace(SETTINGS, extensions=read_settings(os.environ).extensions)
app = create_app(services_over(MemoryStore(), settings))
with TestClient(app) as client:
    answers = {path: (client.get(path).status_code, client.get(path).text) for path in sys.argv[1:]}
modules = sorted(name for name in sys.modules if name.startswith("payagg.extensions."))
print(json.dumps({"answers": answers, "modules": modules, "help": parser(names_in(os.environ)).format_help()}))
"""
SETTINGS = {"console": "PAYAGG_OIDC_ROLES", "archive": "PAYAGG_ARCHIVE_STORE", "cells": "PAYAGG_CELLS"}
COMMANDS = {"archive": "archive", "catchup": "catch-up", "cells": "cell"}
ROUTES = {"console": ["/console", "/console/sign-in", "/"], "cells": ["/internal/cell/gateways"]}


def started(*paths: str, extensions: str) -> Any:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *paths],
        env={"PAYAGG_EXTENSIONS": extensions, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'testing'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])  # log lines stand before


@pytest.mark.parametrize("left_out", NAMES)
def test_an_installation_without_an_extension_loads_nothing_of_it(left_out: str) -> None:
    others = [name for name in NAMES if name != left_out]
    found = started(*ROUTES.get(left_out, ()), extensions=",".join(others) or "none")
    packages = {name.split(".")[2] for name in found["modules"]}
    assert packages == set(others)
    for status, text in found["answers"].values():
        assert (status, json.loads(text)["error"]["code"]) == (404, "NOT_FOUND")
    assert all((f"\n  {command} " in found["help"]) is (name in others) for name, command in COMMANDS.items())


def test_a_command_or_setting_of_an_extension_that_is_left_out_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in COMMANDS.items():
        with pytest.raises(SystemExit) as ended:
            parser([one for one in NAMES if one != name]).parse_args([command])
        assert (ended.value.code, f"invalid choice: '{command}'" in capsys.readouterr().err) == (2, True)
    for setting in SETTINGS.values():
        with pytest.raises(SettingsError, match=f"{setting} is a setting of an extension that PAYAGG_EXTENSIONS"):
            read_settings({"PAYAGG_EXTENSIONS": "none", setting: "60"})


def test_an_extension_that_there_is_not_is_a_fault_of_the_settings() -> None:
    for wrong in ("console,consol", "all", "none,console"):
        with pytest.raises(SettingsError, match="PAYAGG_EXTENSIONS must be"):
            read_settings({"PAYAGG_EXTENSIONS": wrong})
    assert read_settings({"PAYAGG_EXTENSIONS": "none"}).extensions == ()
    assert read_settings({}).extensions == NAMES


def test_the_architecture_describes_every_extension() -> None:
    assert set(NAMES) <= set(DESCRIBED)
