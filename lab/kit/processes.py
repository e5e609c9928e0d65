"""The processes of a run by their names, and a wait that ends the run when it is over."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 120.0  # seconds; a bound, never an expectation
STOP_SECONDS = 60
PAYAGG = (sys.executable, "-m", "payagg")


def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    over = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > over:
            raise SystemExit(f"{what}: never in {seconds:.0f} s.")
        time.sleep(0.1)


def with_addresses(haproxy: str, bind: str, servers: Sequence[str]) -> str:
    """The text of one of deploy's haproxy.cfg with the addresses of this run, in the order of its servers."""
    haproxy, listeners = re.subn(r"bind \S+", f"bind {bind}", haproxy)
    places = iter(servers)
    haproxy, found = re.subn(r"(server [a-z]+\d) \S+", lambda one: f"{one[1]} {next(places)}", haproxy)
    assert (listeners, found) == (1, len(servers))
    return haproxy


def needed(program: str) -> str:
    """Where it is; ends the run where it is not."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/local/sbin")
    if found is None:
        raise SystemExit(f"{program} is not installed.")
    return found


@dataclass
class Processes:
    """Each writes into a log of its own in `folder`. All are killed when the block is left."""

    folder: Path
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(
        self, name: str, command: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(command, env=environ, cwd=cwd or self.folder, stdout=log, stderr=log)

    def lives(self, name: str) -> bool:
        return name in self.running and self.running[name].poll() is None

    def kill(self, name: str) -> None:
        if (process := self.running.pop(name, None)) is not None:
            process.kill()
            process.wait()

    def stop(self, name: str) -> None:
        """Asks it to end; it must not have ended before, and must end cleanly."""
        process = self.running.pop(name)
        if process.poll() is not None:
            raise SystemExit(f"{name} ended by itself with status {process.returncode}: {self.told(name)}")
        process.terminate()
        if process.wait(STOP_SECONDS) != 0:
            raise SystemExit(f"{name} did not stop cleanly: {self.told(name)}")

    def told(self, name: str) -> str:
        """Its last lines."""
        lines = (self.folder / f"{name}.log").read_text("utf-8", "replace").splitlines()
        return "\n".join(["", *lines[-20:]])

    def errors(self) -> list[str]:
        """The lines of all logs that tell of an error in our own code."""
        logs = sorted(self.folder.glob("*.log"))
        lines = [line for log in logs for line in log.read_text("utf-8", "replace").splitlines()]
        return [line for line in lines if "Error" in line or "Exception" in line]

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.running):
            self.kill(name)
