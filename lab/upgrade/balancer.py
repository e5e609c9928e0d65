"""HAProxy as deploy/haproxy.cfg sets it up, in front of servers on loopback."""

import contextlib
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.kit.figures import ROOT
from lab.kit.processes import needed, until
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


def rendered(port: int, ports: Sequence[int], stats: Path) -> str:
    """The file with the addresses of this run."""
    text = CONFIG.read_text()
    text, listeners = re.subn(r"bind \S+", f"bind 127.0.0.1:{port}", text)
    places = iter(ports)
    text, servers = re.subn(r"(server api\d) \S+", lambda found: f"{found[1]} 127.0.0.1:{next(places)}", text)
    assert (listeners, servers) == (1, len(ports))
    return text.replace("global\n", f"global\n    stats socket {stats} level admin\n", 1)


@contextlib.contextmanager
def balancing(folder: Path, ports: Sequence[int]) -> Iterator[Balancer]:
    port, stats, file = free_port(), folder / "haproxy.sock", folder / "haproxy.cfg"
    file.write_text(rendered(port, ports, stats))
    process = subprocess.Popen([needed("haproxy"), "-q", "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
    try:
        until(stats.exists, "HAProxy started", PATIENCE)
        yield Balancer(f"http://127.0.0.1:{port}", stats)
    finally:
        process.terminate()
        process.wait()
