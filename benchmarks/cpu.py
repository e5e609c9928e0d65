"""The CPU that processes have used, so that the cost of a request can be told whatever else the machine does."""

import sys
import time
from dataclasses import dataclass

import psutil
import psycopg


@dataclass(frozen=True)
class Cost:
    """ms of CPU for one request, item or journey."""

    server: float
    postgres: float


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of all threads. On Linux to the nanosecond, where psutil counts ticks of 10 ms."""
    if sys.platform == "linux":
        return time.clock_gettime((~process.pid << 3) | 2)  # the clock that clock_getcpuclockid(3) names
    times = process.cpu_times()
    return float(times.user + times.system)


class PostgresCpu:
    """The CPU of a Postgres on this machine: of its sessions and of what writes, flushes and vacuums for them."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            self._postmaster = psutil.Process(row[0]).parent()
        self._seen: dict[int, float] = {}

    def start(self) -> None:
        self._seen = self._read()

    def stop(self) -> float:
        """Seconds since `start`, those of sessions that ended meanwhile left out."""
        return sum(used - self._seen.get(pid, 0.0) for pid, used in self._read().items())

    def _read(self) -> dict[int, float]:
        used = {}
        for process in [self._postmaster, *self._postmaster.children()]:
            try:
                used[process.pid] = cpu_seconds(process)
            except (OSError, psutil.NoSuchProcess):
                continue
        return used
