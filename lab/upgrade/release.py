"""A release as somebody runs it: where its files lie, the Python that has its packages, and its commands."""

import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.support.machine import ROOT
from tests.support.processes import SECRETS, environment

VERSIONS = "src/payagg/adapters/postgres/migrations/versions"
LOCK, OTHERS = "requirements-dev.lock", "requirements-others.lock"


@dataclass(frozen=True)
class Release:
    name: str
    folder: Path
    python: str

    def environment(self, **settings: str) -> dict[str, str]:
        return environment(PYTHONPATH=str(self.folder / "src"), **SECRETS, **settings)

    @property
    def with_laboratory(self) -> tuple[str, str]:
        """Its Python, and a PYTHONPATH where its own tests and laboratory are, too."""
        return self.python, os.pathsep.join(str(self.folder / name) for name in ("src", "testing", ""))

    def command(self, *words: str) -> list[str]:
        return [self.python, "-m", "payagg", *words]

    def say(self, *words: str, **settings: str) -> str:
        """What a command prints; it must succeed."""
        environ = self.environment(**settings)
        done = subprocess.run(self.command(*words), check=False, capture_output=True, text=True, env=environ)
        if done.returncode != 0:
            raise SystemExit(f"payagg {' '.join(words)} of {self.name}: {done.stdout}{done.stderr}")
        return done.stdout.strip()


def git(*words: str) -> str:
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()


def previous_commit() -> str:
    """The newest tagged release before this commit; while there is none, the last commit with fewer migrations, all of
    them here as they were."""
    tag = git("describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^")
    if tag:
        return tag
    ours = migrations("HEAD")
    for commit in git("rev-list", "--first-parent", "HEAD^").split():
        theirs = migrations(commit)
        if theirs != ours and theirs == ours[: len(theirs)]:
            return commit
    raise SystemExit("The history does not reach back to the previous release: git fetch --unshallow --tags")


def migrations(commit: str) -> list[str]:
    """Mode, digest and path of each, in their order."""
    return [line for line in git("ls-tree", commit, f"{VERSIONS}/").splitlines() if line.endswith(".py")]


def packages(folder: Path) -> set[str]:
    """Of its lock file, each with its hashes."""
    return set(re.findall(r"^\w.*(?:\n .*)*", (folder / LOCK).read_text(), re.MULTILINE))


def checked_out(ref: str, folder: Path) -> Release:
    """The release `ref` in a folder of its own. Packages that it locks otherwise stand there, before ours."""
    commit = git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if not commit:
        raise SystemExit(f"There is no commit {ref}.")
    place = folder / commit[:12]
    place.mkdir()
    archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "--extract", "--directory", str(place)], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        raise SystemExit(f"git archive {ref} failed.")
    python = sys.executable
    if others := packages(place) - packages(ROOT):
        (place / OTHERS).write_text("\n".join(others))
        subprocess.run(["sh", "tools/install.sh", OTHERS, ".venv", sys.executable], cwd=place, check=True)
        python = str(place / ".venv" / "bin" / "python")
        (first,) = place.glob(".venv/lib/python*/site-packages")
        (first / "others.pth").write_text(sysconfig.get_path("purelib"))
    return Release(f"release {commit[:12]}", place, python)
