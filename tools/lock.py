"""The lock files: `python tools/lock.py` writes them with uv, `--check` says whether they fit pyproject.toml.

`--keep` leaves each version as it is where that fits. A lock is whole (`pip install --no-deps`) and names every package
with its hashes, for CPython 3.11 to 3.14 on Linux and macOS, and no index: where packages come from is each machine's
own setting. The first line holds a digest of what pyproject.toml asks for.

requirements.lock is what production installs, requirements-archive.lock the same where `payagg archive` runs,
requirements-embedded.lock what `make run` does, requirements-dev.lock has all of it with the tools,
requirements-build.lock is what makes the wheel, and requirements-ha.lock what the laboratory's part `failover` runs
beside us.
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The extras and dependency groups of each.
LOCKS: dict[str, tuple[list[str], list[str]]] = {
    "requirements.lock": (["server", "otel"], []),
    "requirements-embedded.lock": (["embedded"], []),
    "requirements-archive.lock": (["server", "otel", "archive"], []),
    "requirements-dev.lock": (["embedded", "otel", "archive"], ["dev"]),
    "requirements-build.lock": ([], ["build"]),
    "requirements-ha.lock": ([], ["ha"]),
}
# Litestar requires polyfactory, and that faker, for one thing alone: examples that it invents for OpenAPI documents.
# Ours are written by hand (docs/decisions.md).
LEFT_OUT = ("faker", "polyfactory")


def wanted() -> str:
    """A digest of every requirement in pyproject.toml."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = whole["project"]
    asked = [
        project["requires-python"],
        project["dependencies"],
        project.get("optional-dependencies"),
        whole["dependency-groups"],
    ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def write(*, keep: bool) -> None:
    for name, (extras, groups) in LOCKS.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--quiet", "--universal"]
        command += ["--python-version", "3.11", "--generate-hashes", "--no-emit-index-url", "--no-header"]
        command += ["--no-annotate", "--output-file", name, *([] if keep else ["--upgrade"])]
        for package in LEFT_OUT:
            command += ["--no-emit-package", package]
        command += [word for extra in extras for word in ("--extra", extra)]
        command += [word for group in groups for word in ("--group", group)]
        subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - our own words
        lock = ROOT / name
        lock.write_text(f"# pyproject.toml {wanted()}\n{lock.read_text()}")


def faults() -> list[str]:
    """What is wrong with the locks, one line each."""
    found = []
    for name in LOCKS:
        text = (ROOT / name).read_text()
        if not text.startswith(f"# pyproject.toml {wanted()}\n"):
            found.append(f"{name} was not made from this pyproject.toml: run `make lock`.")
        if "://" in text or re.search(r"^--", text, re.MULTILINE):
            found.append(f"{name} names an address or an index.")
        pinned = re.findall(r"^[a-z0-9][^=\n]*==[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
        if len(pinned) != len(re.findall(r"^[a-z0-9]", text, re.MULTILINE)):
            found.append(f"{name} holds a package without hashes.")
        found += [f"{name} holds {one}." for one in LEFT_OUT if re.search(rf"^{one}==", text, re.MULTILINE)]
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        for fault in faults():
            sys.stderr.write(fault + "\n")
        sys.exit(1 if faults() else 0)
    write(keep=sys.argv[1:] == ["--keep"])
