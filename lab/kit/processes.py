"""The processes of a run by their names, a wait that ends the run when it is over, and ways to kill."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

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

    def stop_all(self) -> None:
        for name in list(self.running):
            self.stop(name)

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


def signalled(pids: Sequence[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Sends it to each process and all below it; what is born meanwhile gets it too."""
    done: set[int] = set()
    while found := [one for pid in pids for one in _tree(pid) if one.pid not in done]:
        for one in found:
            done.add(one.pid)
            with suppress(psutil.NoSuchProcess):
                one.send_signal(number)
        if number == signal.SIGKILL:
            psutil.wait_procs(found, timeout=10)


def _tree(pid: int) -> list[psutil.Process]:
    """Those above first."""
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def postmaster(data: Path) -> int | None:
    """The process of the server whose data directory that is, None while there is none."""
    try:
        return int((data / "postmaster.pid").read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def kill_postgres(state: Path) -> None:
    """Every process of the embedded server with that state, with -9; its watch starts it again."""
    if (pid := postmaster(state / "postgres")) is not None:
        signalled([pid])


def cut_connections(url: str) -> None:
    """Those of the URL's role, to any of its databases."""
    with psycopg.connect(url, autocommit=True) as own:
        own.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename = current_user AND pid <> pg_backend_pid()"
        )
