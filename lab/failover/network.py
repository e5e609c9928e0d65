"""A network of our own, and the account that servers run as."""

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.support.machine import program

INSIDE = "PAYAGG_TEST_HA_INSIDE"
# Postgres and PgBouncer refuse to run as root: they see themselves as somebody who has a name, and own our files.
UNPRIVILEGED = ("unshare", "--user", "--map-user=1", "--map-group=1", "--")


def enter_network(arguments: Sequence[str]) -> None:
    """Starts this run again in a network namespace with a loopback and nothing else: addresses and ports are free
    there, and packets can be dropped without anybody else's noticing. Somebody who is not root is root in it."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    for name in ("unshare", "ip", "iptables"):
        program(name)
    mapped = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ["unshare", "--net", *mapped, "--", sys.executable, "-m", "lab", "failover", *arguments]
    os.execvpe(command[0], command, {**os.environ, INSIDE: "yes", "PAYAGG_LAB_INSTALLED": "yes"})


def drop_packets(address: str, *, is_dropped: bool) -> None:
    """To the address: whatever is sent there has no answer, not even that nobody listens."""
    for what in ("-d", "-s"):
        rule = ["INPUT", what, address, "-j", "DROP"]
        subprocess.run([program("iptables"), "-A" if is_dropped else "-D", *rule], check=True)
