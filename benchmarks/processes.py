"""What another server process gains: one, two and four of them, and where their time goes.

On a machine with few cores the load, the servers and Postgres take each other's. So they are measured twice: as they come,
and with each server held to SHARE of a core by a control group, which leaves cores free as a larger machine has them: what
more processes gain then is lost to nothing but what they share. Holding them needs Linux and root.
"""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import psycopg

from benchmarks.cpu import PostgresCpu, cpu_seconds
from benchmarks.deployment import OWN
from benchmarks.harness import Round, process, write_between
from tests.support.ports import free_port

NUMBERS = (1, 2, 4)
POOL = "10"  # connections of one process: all servers run at once
SHARE = 0.2  # of a core
PERIOD_US = 10_000  # short, so that a held process answers late by milliseconds and not by tens of them
GROUPS = Path("/sys/fs/cgroup")
LOOK_SECONDS = 0.01
DOCUMENT = OWN / "docs" / "performance.md"
MARKERS = ("<!-- processes: written by `make bench ARGS=--only processes` -->", "<!-- processes: end -->")


def measure(
    url: str, environment: dict[str, str], rounds: int, loads: dict[str, Callable[[str], Round]]
) -> dict[str, Any]:
    """Medians over rounds in which the numbers of processes alternate. `loads` send a round of requests to a server's
    address. Rates are of a second, CPU is ms of one request."""
    taken: dict[str, list[dict[str, float]]] = {}
    waits: Counter[str] = Counter()
    with ExitStack() as stack:
        servers = {number: stack.enter_context(_servers(number, environment)) for number in NUMBERS}
        for share in (None, SHARE):
            with ExitStack() as held:
                for _, pids in servers.values():
                    for pid in pids if share is not None else ():
                        held.enter_context(_held(pid, share or 1.0))
                for turn in range(rounds + 1):
                    for number, (address, pids) in servers.items():
                        for name, load in loads.items():
                            found = _round(url, address, pids, load, waits)
                            if turn:  # the first one warms up
                                taken.setdefault(f"{name} {share or 'free'} {number}", []).append(found)
                                print(f"  {name} {share} {number}: {found['rate']:.0f}/s", file=sys.stderr, flush=True)
    figures = {key: {of: median(one[of] for one in found) for of in found[0]} for key, found in taken.items()}
    all_looks = max(1, waits.total())
    figures["waits"] = {kind: number / all_looks for kind, number in waits.most_common(8)}
    write_between(table(figures, list(loads)), DOCUMENT, MARKERS)
    return figures


def table(figures: dict[str, Any], loads: list[str]) -> str:
    lines = [
        "| operation | server processes | as they come, /s | gain | server ms | Postgres ms "
        f"| held to {SHARE} of a core, /s | gain | server ms | Postgres ms |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in loads:
        for number in NUMBERS:
            cells = []
            for share in ("free", str(SHARE)):
                own, first = figures[f"{name} {share} {number}"], figures[f"{name} {share} {NUMBERS[0]}"]
                gain = own["rate"] / first["rate"]
                cells += [f"{own['rate']:,.0f}", f"{gain:.2f}", f"{own['server']:.2f}", f"{own['postgres']:.2f}"]
            lines.append(f"| {name} | {number} | {' | '.join(cells)} |")
    told = ", ".join(f"{kind} {part:.0%}" for kind, part in figures["waits"].items())
    return "\n".join([*lines, "", f"What Postgres' sessions did, of all looks at them: {told}."])


def _round(
    url: str, address: str, pids: list[int], load: Callable[[str], Round], waits: Counter[str]
) -> dict[str, float]:
    servers = [psutil.Process(pid) for pid in pids]
    postgres = PostgresCpu(url)
    over = threading.Event()
    looking = threading.Thread(target=_look, args=(url, over, waits))
    looking.start()
    postgres.start()
    before, begun = sum(map(cpu_seconds, servers)), time.monotonic()
    found = load(address)
    seconds = time.monotonic() - begun
    answered = max(1.0, found.rate * seconds)
    own, database = sum(map(cpu_seconds, servers)) - before, postgres.stop()
    over.set()
    looking.join()
    if found.errors:
        raise SystemExit(f"{found.errors} requests failed")
    return {
        "rate": found.rate,
        "p50": found.p50,
        "p99": found.p99,
        "server": 1000 * own / answered,
        "postgres": 1000 * database / answered,
    }


def _look(url: str, over: threading.Event, waits: Counter[str]) -> None:
    """Notes what each session of the database works on or waits for, until `over`."""
    asked = (
        "SELECT CASE WHEN wait_event IS NULL THEN 'working' ELSE wait_event_type || ': ' || wait_event END "
        "FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        while not over.wait(LOOK_SECONDS):
            waits.update(row[0] for row in connection.execute(asked))


@contextmanager
def _servers(number: int, environment: dict[str, str]) -> Iterator[tuple[str, list[int]]]:
    """`payagg serve --workers N` without a worker: its address, and the processes that answer."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = ["-m", "payagg", "serve", "--no-worker", "--workers", str(number), "--port", str(port)]
    with process(command, environment | {"PAYAGG_POOL_SIZE": POOL}, f"{address}/readyz") as parent:
        yield address, [child.pid for child in parent.children()] or [parent.pid]


@contextmanager
def _held(pid: int, share: float) -> Iterator[None]:
    """That process gets at most `share` of a core, by a group of its own in either version of control groups."""
    first = (GROUPS / "cpu").is_dir()
    group = (GROUPS / "cpu" if first else GROUPS) / f"payagg-bench-{pid}"
    try:
        group.mkdir()
        quota = int(PERIOD_US * share)
        if first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise SystemExit(f"A process cannot be held to a share of a core here: {error}") from error
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(pid))
        os.rmdir(group)
