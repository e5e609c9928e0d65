"""Where a figure of the scorecard comes from: a command that runs now, a file that a longer one wrote, or nowhere."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.scorecard.figures import FOLDER, noted

ROOT = Path(__file__).parents[2]
DOES_NOT_RUN = 3  # the exit status of our own commands whose program is not installed


class Figure(NamedTuple):
    text: str
    date: str


class Reading(Protocol):
    @property
    def command(self) -> str:
        """As anyone types it in a checkout that `make test` ran in."""

    def read(self) -> Figure: ...


@dataclass(frozen=True)
class Run:
    """A module that is run now. `words` are filled with the groups that `pattern` finds in its output."""

    module: str
    words: str = "{passed} tests pass"
    pattern: str = r"(?P<passed>[0-9]+) passed"
    seconds: float = 240.0  # an end for it, never an expectation

    @property
    def command(self) -> str:
        return f"`.venv/bin/python -m {self.module}`"

    def read(self) -> Figure:
        today = datetime.now(UTC).date().isoformat()
        # What is set for somebody's own runs, as more rounds of a search, would make other figures of these words.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PAYAGG_")}
        environ["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        # In a session of its own, so that what it started ends with it.
        running = subprocess.Popen(
            [sys.executable, "-m", *_words(self.module)],
            cwd=ROOT,
            env=environ,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            output, _ = running.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGTERM)  # a product that it started stops its Postgres, too
            running.communicate()
            return Figure(f"FAILED: not over after {self.seconds:.0f} s", today)
        return Figure(self.figure(running.returncode, output.decode("utf-8", "replace")), today)

    def figure(self, status: int, told: str) -> str:
        """What a command has measured that ended with `status`."""
        last = (told.strip().splitlines() or [""])[-1][:200]
        if status == DOES_NOT_RUN:
            return f"not measured: {last}"
        found = re.search(self.pattern, told)
        if found is None and not status and " skipped" in last:
            return f"not measured: {last}"  # what it needs is not installed
        if status or found is None:
            return f"FAILED: {last}"
        return self.words.format(**found.groupdict())


def _words(line: str) -> list[str]:
    """A module's name and arguments; quoted ones hold spaces."""
    return [one.strip("'") for one in re.findall(r"'[^']*'|\S+", line)]


@dataclass(frozen=True)
class Written:
    """What a longer command wrote into a document; its date is that of the document's last change."""

    typed: str
    document: str
    pattern: str
    words: str

    @property
    def command(self) -> str:
        return f"`{self.typed}`"

    def read(self) -> Figure:
        file = ROOT / self.document
        found = re.search(self.pattern, file.read_text("utf-8")) if file.exists() else None
        if found is None:
            return Figure(f"not measured: `{self.typed}` has not written it yet", "")
        asked = ["git", "-c", f"safe.directory={ROOT}", "log", "-1", "--format=%cs", "--", self.document]
        date = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True).stdout.strip()
        return Figure(self.words.format(**found.groupdict()), date)


@dataclass(frozen=True)
class Noted:
    """What a longer command noted below tests/figures/."""

    typed: str
    name: str
    words: str

    @property
    def command(self) -> str:
        return f"`{self.typed}`"

    def read(self) -> Figure:
        known = noted(self.name)
        if known is None:
            return Figure(f"not measured: `{self.typed}` has noted nothing in {FOLDER.name}/ yet", "")
        return Figure(self.words.format(**known), known["date"])


@dataclass(frozen=True)
class Absent:
    """A measure that nobody takes."""

    reason: str

    @property
    def command(self) -> str:
        return "none"

    def read(self) -> Figure:
        return Figure(f"not measured: {self.reason}", "")
