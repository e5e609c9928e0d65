"""How a part tells what it finds: a line for each thing tried, one line at the end, and the figures of a whole run."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.kit.figures import note
from tests.support.rounds import SHORT


@dataclass
class Tally:
    """`part` and `arguments` are what was typed."""

    part: str
    arguments: Sequence[str]
    tried: int = 0
    broken: int = 0
    began: float = field(default_factory=time.monotonic)

    def line(self, text: str, wrong: Sequence[str] = ()) -> None:
        """One thing that was tried, and what of it does not hold."""
        self.tried += 1
        self.broken += bool(wrong)
        print(f"{'BROKEN' if wrong else 'holds '}  {text}", *wrong[:20], sep="\n        ", flush=True)

    def searched(self, name: str, files: str, times: int) -> None:
        """Tests of `make test` that search, with `times` as many rounds."""
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *files.split()]
        done = subprocess.run(command, env=os.environ | {"PAYAGG_TEST_ROUNDS": str(times * SHORT)}, check=False)
        self.line(name, [] if done.returncode == 0 else ["see above"])

    @property
    def holds(self) -> int:
        return self.tried - self.broken

    def end(self, *, whole: bool, name: str = "", **figures: Any) -> int:
        """The exit status. The figures of a `whole` run are noted under `name`, or else under the part's."""
        minutes = round((time.monotonic() - self.began) / 60, 1)
        told = "".join(f", {key} {value}" for key, value in figures.items())
        print(f"{self.part}: {self.holds} of {self.tried} hold, in {minutes} minutes{told}.", flush=True)
        if whole:
            counts = {"holds": self.holds, "all": self.tried, "minutes": minutes}
            note(name or self.part, self.part, self.arguments, **counts, **figures)
        return 1 if self.broken or not self.tried else 0
