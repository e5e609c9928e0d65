"""A network of our own, the account that servers run as, and what is done to whole trees of processes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
INSIDE = "PAYAGG_TEST_HA_INSIDE"
# Postgres and PgBouncer refuse to run as root: they see themselves as somebody who has a name, and own our files.
UNPRIVILEGED = ("unshare", "--user", "--map-user=1", "--map-group=1", "--")
PATIENCE = 120.0


def enter_network() -> None:
    """Starts this program again in a network namespace with a loopback and nothing else: addresses and ports are free
    there, and packets can be dropped without anybody else's noticing. Somebody who is not root is root in it."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    for program in ("unshare", "ip", "iptables"):
        needed(program)
    mapped = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ["unshare", "--net", *mapped, "--", sys.executable, "-m", "tests.ha.run", *sys.argv[1:]]
    os.execvpe(command[0], command, {**os.environ, INSIDE: "yes"})


def needed(program: str) -> str:
    """Where it is; ends the run where it is not."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin")
    if found is None:
        raise SystemExit(f"{program} is not installed.")
    return found


def drop_packets(address: str, *, is_dropped: bool) -> None:
    """To the address: whatever is sent there has no answer, not even that nobody listens."""
    for what in ("-d", "-s"):
        rule = ["INPUT", what, address, "-j", "DROP"]
        subprocess.run([needed("iptables"), "-A" if is_dropped else "-D", *rule], check=True)


def tree(pid: int) -> list[psutil.Process]:
    """The process and all below it, those above first."""
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def signalled(pids: list[int], number: signal.Signals) -> None:
    """Sends it to each process and all below it; what is born meanwhile gets it too."""
    done: set[int] = set()
    while found := [one for pid in pids for one in tree(pid) if one.pid not in done]:
        for one in found:
            done.add(one.pid)
            with suppress(psutil.NoSuchProcess):
                one.send_signal(number)
        if number == signal.SIGKILL:
            psutil.wait_procs(found, timeout=10)


def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    over = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > over:
            raise SystemExit(f"{what}: never in {seconds:.0f} s.")
        time.sleep(0.1)
