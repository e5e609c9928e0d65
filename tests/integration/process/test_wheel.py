"""What others install: the built wheels, of the product and of the harness, in a fresh environment, used from there."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.machine import ROOT
from tests.support.processes import one_line

pytestmark = pytest.mark.release
USE_OF_SITE = """
from payagg.entrypoints.http.docs.description import describe
from payagg.entrypoints.http.docs.site import DocsSite
from payagg.entrypoints.settings import Settings

print(DocsSite(describe(Settings())).files()["quick-start"].decode())
"""
USE_OF_TESTING = """
import importlib.metadata
import sys
from pathlib import Path

import payagg
import payagg_testing
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from payagg_testing import DomainSystem, payment_machine

for package in (payagg, payagg_testing):
    assert Path(package.__file__).is_relative_to(sys.prefix), package.__file__
assert all(getattr(payagg_testing, name) for name in payagg_testing.__all__)
assert importlib.metadata.version("payagg-testing") == importlib.metadata.version("payagg")
brief = settings(max_examples=5, stateful_step_count=10, deadline=None, database=None)
run_state_machine_as_test(payment_machine(DomainSystem), settings=brief)
"""


def ran(*command: object) -> str:
    # Nothing of the working tree may be seen: neither PYTHONPATH nor the current folder.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd="/", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of the product, and of the harness, built at once."""
    into = tmp_path_factory.mktemp("wheel")
    ran(
        *(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation"),
        *("--quiet", "--disable-pip-version-check", "--wheel-dir", into, ROOT, ROOT / "testing"),
    )
    return [path for name in ("payagg-*.whl", "payagg_testing-*.whl") for path in into.glob(name)]


def install(python: Path, *what: object) -> None:
    """By `pip install`, which may fetch nothing; no module is compiled that nobody imports."""
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-compile")
    ran(*pip, "--quiet", "--disable-pip-version-check", *what)


def test_the_package_works_alone_and_with_harness_and_server(wheels: list[Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=False, symlinks=True)
    python = tmp_path / "fresh" / "bin" / "python"
    # Without third parties: the wheel asks for none.
    install(python, wheels[0])
    modules = sorted((ROOT / "src" / "payagg" / "domain").glob("[a-z]*.py"))
    ran(python, "-c", "\n".join(f"import payagg.domain.{path.stem}" for path in modules))
    assert ran(python.with_name("payagg"), "--version").startswith("payagg ")
    done = subprocess.run([python.with_name("payagg"), "serve"], capture_output=True, text=True, check=False, cwd="/")
    assert one_line(done).endswith("pip install 'payagg[server]'.\n")
    install(python, "--no-deps", wheels[1])
    # Third parties are borrowed from the running environment, last.
    (site,) = (tmp_path / "fresh" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    ran(python, "-c", USE_OF_TESTING)
    assert "receiver" in ran(python.with_name("payagg-testing"), "--help")
    assert "You need Linux, Python" in ran(python, "-c", USE_OF_SITE)


def test_the_wheel_tells_what_it_is_and_holds_the_package_and_nothing_else(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as archive:
        names = archive.namelist()
        (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = archive.read(name).decode()
    extras = {"archive", "embedded", "otel", "server"}
    assert set(re.findall(r"^Provides-Extra: (.+)$", told, re.MULTILINE)) == extras
    assert re.findall(r"^Requires-Dist: (?!.* extra == ).*$", told, re.MULTILINE) == []
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"payagg"}
    files = (path for path in (ROOT / "src" / "payagg").rglob("*") if path.is_file())
    ours = {path.relative_to(ROOT / "src").as_posix() for path in files if "__pycache__" not in path.parts}
    of_dev = {path for path in ours if path.startswith("payagg/entrypoints/dev/")}
    assert ours & set(names) == ours - of_dev
    with zipfile.ZipFile(wheels[1]) as archive:
        assert {name for name in archive.namelist() if name.startswith("payagg/")} == of_dev
    assert {"payagg/docs/guide/quick-start.md", "payagg/docs/errors.md"} <= set(names)  # the texts of the site
    assert "payagg/py.typed" in names  # type checkers read our annotations
