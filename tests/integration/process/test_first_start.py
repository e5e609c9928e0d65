"""What stands in a newcomer's way at `make run`, each one line: Python, network, an old state folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from tests.support.machine import ROOT
from tests.support.processes import environment, payagg, succeeded

pytestmark = pytest.mark.release
INTERPRETER = "src/payagg/entrypoints/process/interpreter.py"
PARTS = ("Makefile", "tools", "requirements-embedded.lock", "requirements-dev.lock", INTERPRETER)
# What the shell script uses, and no Python.
PROGRAMS = ("sh", "make", "cat", "cksum", "tail", "head", "grep", "tr", "mkdir", "rm", "tee", "awk", "mktemp")
NO_INDEX = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
# As the first version made it: its one role was the superuser, and the database was a copy.
MADE_LONG_AGO = """
import sys
from pathlib import Path
from payagg.adapters.postgres.embedded import data_folder
data_folder.SUPERUSER = "payagg"
data_folder.FIRST_STATEMENTS = ("CREATE DATABASE payagg",)
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.connections import sync_engine
with EmbeddedPostgres(Path(sys.argv[1])) as server:
    from alembic import command
    from alembic.config import Config
    from payagg.adapters.postgres import migrations
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with sync_engine(server.url) as engine, engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What `make run` reads before there is a Python environment."""
    folder = tmp_path / "clone"
    (folder / INTERPRETER).parent.mkdir(parents=True)
    for name in PARTS:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    return folder


def programs(folder: Path, **more: str) -> str:
    """A PATH with the named programs and no other."""
    folder.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    for name, place in more.items():
        (folder / name).symlink_to(place)
    return str(folder)


def make_run(clone: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Without what directs pip, Python, or an outer make."""
    left_out = ("PIP_", "PYTHON", "MAKE", "PAYAGG_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(left_out)} | variables
    return subprocess.run(["make", "run"], cwd=clone, env=environ, check=False, capture_output=True, text=True)


def refusal(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line on standard error, without make's own."""
    assert done.returncode == 2, done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(said) == 1, done.stderr
    return said[0]


def a_script(path: Path, lines: str) -> str:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version", [None, "Python 3.9.2"])
def test_without_a_python_or_with_an_old_one_the_line_says_which_is_needed(
    clone: Path, tmp_path: Path, version: str | None
) -> None:
    old = a_script(tmp_path / "old", f'[ "$1" = --version ] && echo {version} && exit\nexit 1')
    path = programs(tmp_path / "bin", **({"python3": old} if version else {}))
    needed = f"payagg needs Python 3.11 or newer; found {version or 'none'}. Install it and run make again."
    assert refusal(make_run(clone, PATH=path)) == needed


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ({"python3.13": "3 13, not optimised", "python3.12": "4 12, optimised"}, "python3.12: 12, optimised"),
        ({"python3.13": "3 13, not optimised", "python3": "3 11, not optimised"}, "python3.13: 13, not optimised"),
        ({"python3.13": "2 13, optimised", "python3.11": "3 11, not optimised"}, "python3.11: 11, not optimised"),
        ({"python3.13": "", "python3": "4 11, optimised"}, "python3: 11, optimised"),
    ],
    ids=["optimised before newer", "newer of equals", "one that can fetch packages first", "no shim without a Python"],
)
def test_the_best_python_on_the_path_is_taken_and_named(
    clone: Path, tmp_path: Path, found: dict[str, str], taken: str
) -> None:
    played = {
        name: a_script(tmp_path / name, f'[ "$1" = -I ] && echo "{said}"\nexit {not said:d}')
        for name, said in found.items()
    }
    path = programs(tmp_path / "bin", **played)
    told = make_run(clone, PATH=path).stdout
    assert f"Making .venv with {path}/{taken} (" in told
    # It leads to what such a build costs.
    assert ("see docs/guide/installing.md" in told) is ("not optimised" in taken)
    assert "without optimisation" in (ROOT / "docs/guide/installing.md").read_text()


def test_a_package_index_that_is_not_reached_is_one_line(clone: Path) -> None:
    said = refusal(make_run(clone, **NO_INDEX))
    assert said.startswith("The packages could not be fetched, as pip reaches no package index: look at the network")
    story = Path(said.rpartition(" in ")[2].rstrip("."))
    assert "No matching distribution found" in story.read_text()
    story.unlink()


@pytest.fixture
def old_state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    subprocess.run([sys.executable, "-c", MADE_LONG_AGO, str(folder)], check=True, env=environment())
    yield folder
    EmbeddedPostgres(folder).destroy()


def test_the_state_folder_of_an_earlier_version_is_brought_up_to_date(old_state: Path) -> None:
    lines = succeeded(payagg("migrate", PAYAGG_STATE_DIR=str(old_state))).splitlines()
    assert "Bringing the schema up to date ..." in lines
    succeeded(payagg("doctor", PAYAGG_STATE_DIR=str(old_state)))
