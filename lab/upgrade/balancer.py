"""HAProxy as deploy/haproxy.cfg sets it up, in front of servers on loopback."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.kit.processes import Processes, until, with_addresses
from tests.support.machine import ROOT, program
from tests.support.ports import free_port

CONFIG = ROOT / "deploy" / "haproxy.cfg"
PATIENCE = 60.0


@dataclass(frozen=True)
class Balancer:
    origin: str
    _stats: Path

    def state(self, server: str) -> str:
        """UP, DOWN or what HAProxy else calls it."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(self._stats))
            asking.sendall(b"show stat\n")
            said = b"".join(iter(lambda: asking.recv(65536), b"")).decode()
        head, *rows = [line.split(",") for line in said.lstrip("# ").splitlines() if line]
        column = head.index("status")
        return next(row[column] for row in rows if row[:2] == ["payagg", server])

    def sends_to(self, server: str) -> bool:
        """Waits for it to be UP; whether it came to be."""
        with contextlib.suppress(SystemExit):
            until(lambda: self.state(server) == "UP", f"{server} UP", PATIENCE)
        return self.state(server) == "UP"


@contextlib.contextmanager
def balancing(folder: Path, ports: Sequence[int]) -> Iterator[Balancer]:
    port, stats, file = free_port(), folder / "haproxy.sock", folder / "haproxy.cfg"
    text = with_addresses(CONFIG.read_text(), f"127.0.0.1:{port}", [f"127.0.0.1:{one}" for one in ports])
    file.write_text(text.replace("global\n", f"global\n    stats socket {stats} level admin\n", 1))
    with Processes(folder) as processes:
        processes.start("haproxy", [program("haproxy"), "-q", "-db", "-f", str(file)])
        until(stats.exists, "HAProxy started", PATIENCE)
        yield Balancer(f"http://127.0.0.1:{port}", stats)
