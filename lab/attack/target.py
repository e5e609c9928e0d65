"""What is attacked, what an attack found, and the few tools that most attacks share."""

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 30.0  # seconds for an answer that must come; a bound for a slow machine, never an expectation
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class AttackResult:
    """`tried` and `happened` are for the table; the attack `succeeded` or the product held."""

    tried: str
    happened: str
    succeeded: bool


@dataclass(frozen=True)
class Target:
    """A running `payagg serve` and, where it was started too, a `payagg dev` on the same data."""

    origin: str
    pid: int  # of the process that answers at `origin`
    secret_key: str  # of a sandbox
    merchant_token: str
    business_id: str
    dev_origin: str

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.origin.removeprefix("http://").partition(":")
        return host, int(port)

    def connect(self, *, source: str = "127.0.0.1", keeps: int | None = None) -> socket.socket:
        """A connection from that loopback address, whose own side keeps so many bytes of what comes."""
        client = socket.socket()
        client.settimeout(PATIENCE)
        if keeps is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, keeps)
        client.bind((source, 0))
        client.connect(self.address)
        return client

    def told(self, sent: bytes, *, source: str = "127.0.0.1") -> bytes:
        """All that the product answers to these bytes until it closes or says nothing more for two seconds."""
        got = b""
        with self.connect(source=source) as client:
            try:
                client.sendall(sent)
                client.settimeout(2)
                while part := client.recv(65536):
                    got += part
            except OSError:  # closed while we send, or silent
                return got
        return got

    def ask(self, method: str, path: str, *, source: str = "127.0.0.1", **more: Any) -> httpx.Response:
        """One request over a connection of its own."""
        transport = httpx.HTTPTransport(local_address=source)
        with httpx.Client(base_url=self.origin, timeout=PATIENCE, transport=transport, trust_env=False) as client:
            return client.request(method, path, **more)

    @property
    def as_key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"}

    def a_payment(self) -> str:
        """The reference of a fresh sandbox payment."""
        answer = self.ask("POST", "/api/v1/payments/initiate", json={"amount": 150_000}, headers=self.as_key)
        return str(answer.raise_for_status().json()["data"]["reference"])

    def memory(self) -> int:
        """Bytes of the process's resident memory."""
        (pages,) = re.findall(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        return int(pages) * 1024

    def cpu(self) -> float:
        """Seconds of processor time that the process has used, in steps of a hundredth."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def queued(self) -> int:
        """Bytes that the kernel keeps for clients of `origin`."""
        port, found = f":{self.address[1]:04X}", 0
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, _, queues, *_ = line.split()
            found += int(queues.partition(":")[0], 16) if local.endswith(port) else 0
        return found

    def is_well(self) -> bool:
        """Whether it still answers somebody who did nothing."""
        try:
            return self.ask("GET", "/healthz", source="127.0.0.250").status_code == 200
        except httpx.HTTPError:
            return False
