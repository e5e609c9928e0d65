"""Three nodes of Patroni on three members of etcd, as deploy/failover/patroni.yml has it, in a network of their own."""

import copy
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from lab.kit.processes import Processes, postmaster, signalled, until
from payagg.adapters.postgres.embedded.data_folder import find_package
from tests.support.machine import ROOT, program

INSIDE = "PAYAGG_TEST_HA_INSIDE"
# Postgres and PgBouncer refuse to run as root: they see themselves as somebody who has a name, and own our files.
UNPRIVILEGED = ("unshare", "--user", "--map-user=1", "--map-group=1", "--")


def run_inside(arguments: Sequence[str], **settings: str) -> int:
    """The exit status of this run in a network namespace with a loopback and nothing else: addresses and ports are free
    there, and packets can be dropped without anybody else's noticing. Somebody who is not root is root in it."""
    for name in ("unshare", "ip", "iptables"):
        program(name)
    mapped = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ["unshare", "--net", *mapped, "--", sys.executable, "-m", "lab", "failover", *arguments]
    return subprocess.call(command, env={**os.environ, INSIDE: "yes", "PAYAGG_LAB_INSTALLED": "yes", **settings})


def drop_packets(address: str, *, is_dropped: bool) -> None:
    """To the address: whatever is sent there has no answer, not even that nobody listens."""
    for what in ("-d", "-s"):
        rule = ["INPUT", what, address, "-j", "DROP"]
        subprocess.run([program("iptables"), "-A" if is_dropped else "-D", *rule], check=True)


CONFIG = ROOT / "deploy" / "failover" / "patroni.yml"
PATRONI = ROOT / ".patroni" / "bin" / "patroni"
POSTGRES = 5432
REST = 8008
CHECK_SECONDS = 2.0


@dataclass
class Etcd:
    """One member. Its data outlives it."""

    number: int
    processes: Processes

    @property
    def name(self) -> str:
        return f"etcd{self.number}"

    @property
    def address(self) -> str:
        return f"127.0.0.{20 + self.number}"

    def start(self) -> None:
        clients, peers = f"http://{self.address}:2379", f"http://{self.address}:2380"
        everybody = ",".join(f"etcd{number}=http://127.0.0.{20 + number}:2380" for number in (1, 2, 3))
        command = [program("etcd"), "--name", self.name, "--data-dir", str(self.processes.folder / self.name)]
        command += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
        command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
        command += ["--initial-cluster", everybody, "--initial-cluster-state", "new"]
        self.processes.start(self.name, command)

    def kill(self) -> None:
        self.processes.kill(self.name)


@dataclass
class Node:
    """One machine: Patroni, its Postgres and an address."""

    number: int
    processes: Processes
    is_off: bool = False

    @property
    def name(self) -> str:
        return f"db{self.number}"

    @property
    def folder(self) -> Path:
        return self.processes.folder / self.name

    @property
    def address(self) -> str:
        return f"127.0.0.{10 + self.number}"

    def configure(self, config: dict[str, Any]) -> None:
        self.folder.mkdir()
        mine = copy.deepcopy(config)
        mine["name"] = self.name
        mine["restapi"] = dict.fromkeys(("listen", "connect_address"), f"{self.address}:{REST}")
        mine["etcd3"]["hosts"] = [f"127.0.0.{20 + number}:2379" for number in (1, 2, 3)]
        postgres = mine["postgresql"]
        postgres |= dict.fromkeys(("listen", "connect_address"), f"{self.address}:{POSTGRES}")
        postgres |= {"data_dir": str(self.folder / "data"), "bin_dir": str(find_package() / "pginstall18" / "bin")}
        postgres["pg_hba"] = ["host replication all 127.0.0.0/8 trust", "host all all 127.0.0.0/8 trust"]
        # Of the machine and not of the cluster: no socket in a folder of everybody's, and little memory.
        postgres["parameters"] = {"unix_socket_directories": "", "shared_buffers": "64MB"}
        (self.folder / "patroni.yml").write_text(yaml.safe_dump(mine))

    def start(self) -> None:
        self.processes.start(self.name, [*UNPRIVILEGED, str(PATRONI), str(self.folder / "patroni.yml")])

    @property
    def postmaster(self) -> int | None:
        return postmaster(self.folder / "data")

    def _pids(self) -> list[int]:
        found = [one.pid for name, one in self.processes.running.items() if name == self.name]
        return found + ([] if self.postmaster is None else [self.postmaster])

    def kill(self) -> None:
        signalled(self._pids(), signal.SIGKILL)
        self.processes.kill(self.name)

    def power_off(self) -> None:
        """Nobody hears a farewell, and nobody is told that nobody listens."""
        drop_packets(self.address, is_dropped=True)
        self.is_off = True
        self.kill()

    def freeze(self) -> None:
        signalled(self._pids(), signal.SIGSTOP)

    def wake(self) -> None:
        signalled(self._pids(), signal.SIGCONT)

    def kill_postmaster(self) -> None:
        pid = self.postmaster
        assert pid is not None
        # Alone: what it started notices and ends by itself.
        os.kill(pid, signal.SIGKILL)

    def repair(self) -> None:
        """Brings back what is missing of it."""
        if self.is_off:
            drop_packets(self.address, is_dropped=False)
            self.is_off = False
        self.wake()
        if self.name not in self.processes.running:
            self.start()

    def ask(self, path: str) -> httpx.Response | None:
        try:
            return httpx.get(f"http://{self.address}:{REST}{path}", timeout=CHECK_SECONDS, trust_env=False)
        except httpx.TransportError:
            return None


@dataclass
class Cluster:
    nodes: list[Node]
    etcd: list[Etcd] = field(default_factory=list)

    @property
    def addresses(self) -> list[str]:
        return [node.address for node in self.nodes]

    def _answering(self, path: str, what: str) -> Node:
        found: list[Node] = []

        def is_found() -> bool:
            found[:] = [node for node in self.nodes if (said := node.ask(path)) and said.status_code == 200]
            return bool(found)

        until(is_found, what)
        return found[0]

    def leader(self) -> Node:
        """The node that has the lock; waits for one."""
        return self._answering("/primary", "a primary")

    def standby(self) -> Node:
        """One of those whose word the primary waits for: any one's is enough."""
        return self._answering("/quorum", "a standby that is waited for")

    def is_whole(self) -> bool:
        """One primary, and two standbys that follow it, one of which has what is committed."""
        said = next((answer for node in self.nodes if (answer := node.ask("/cluster"))), None)
        members = said.json().get("members", []) if said is not None and said.status_code == 200 else []
        told = sorted((one["role"], one["state"]) for one in members)
        if told != [("leader", "running"), ("quorum_standby", "streaming"), ("quorum_standby", "streaming")]:
            return False
        return len({one["timeline"] for one in members}) == 1

    def lose_etcd(self, members: int) -> None:
        for member in self.etcd[:members]:
            member.kill()

    def repair(self) -> None:
        for member in self.etcd:
            if member.name not in member.processes.running:
                member.start()
        for node in self.nodes:
            node.repair()
        until(self.is_whole, "the cluster whole again")

    def switch_over(self) -> None:
        old, new = self.leader(), self.standby()
        said = httpx.post(
            f"http://{old.address}:{REST}/switchover",
            json={"leader": old.name, "candidate": new.name},
            timeout=60,
            trust_env=False,
        )
        if said.status_code != 200:
            raise SystemExit(f"Patroni refuses a switchover: {said.text}")


@contextmanager
def a_cluster(folder: Path) -> Iterator[Cluster]:
    if not PATRONI.exists():
        raise SystemExit("Patroni is not installed: `make patroni`.")
    config = yaml.safe_load(CONFIG.read_text())
    with Processes(folder) as processes:
        numbers = (1, 2, 3)
        cluster = Cluster([Node(one, processes) for one in numbers], [Etcd(one, processes) for one in numbers])
        try:
            for member in cluster.etcd:
                member.start()
            for node in cluster.nodes:
                node.configure(config)
                node.start()
            until(cluster.is_whole, "the cluster whole")
            yield cluster
        finally:
            for node in cluster.nodes:
                node.wake()
                node.kill()
