"""Ways to kill: a process with all below it, a Postgres, the connections to one database."""

import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg


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
    with psycopg.connect(url, autocommit=True) as own:
        own.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
