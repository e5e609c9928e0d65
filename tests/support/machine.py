"""Where this checkout lies, and what is installed here; what is missing skips a test, but fails it in CI."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests" / "node"
_PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"))


def absent(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what}; CI does not skip")
    pytest.skip(what)


def program(name: str, package: str | None = None) -> str:
    """Where it is installed; `package` is Debian's, where it has another name."""
    return shutil.which(name, path=_PATH) or absent(
        f"{name} is not installed (on Debian: apt install {package or name})"
    )


def node_package(name: str) -> Path:
    """The folder of what `npm ci` in tests/node brought."""
    folder = NODE / "node_modules" / name
    return folder if folder.is_dir() else absent(f"{name} is not installed (run `npm ci` in tests/node)")
