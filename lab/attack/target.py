"""What is attacked, what an attack found, and the few tools that most attacks share.

An attack is a function of attacks.py whose name starts with `attack_`. It gets the Target, loads it for some seconds at
most, on loopback alone, and returns an AttackResult; its docstring says what it does. Success is told by the product's
answers or by what its process used, never by the time an answer took.
`tests/integration/process/test_attacks.py` tries each against a server without cures, where it must succeed.
"""

import socket
from dataclasses import dataclass, replace
from typing import Any

import httpx
import psutil

PATIENCE = 30.0  # seconds for an answer that must come; a bound for a slow machine, never an expectation


@dataclass(frozen=True)
class AttackResult:
    """`tried` and `happened` are for the table; the attack `succeeded` or the product held."""

    tried: str
    happened: str
    succeeded: bool


@dataclass(frozen=True)
class Target:
    """A running `payagg serve`, and HAProxy before another one on the same data."""

    origin: str
    pid: int  # of the process that answers at `origin`
    secret_key: str  # of a sandbox
    front_origin: str

    @property
    def front(self) -> "Target":
        """The one behind HAProxy."""
        return replace(self, origin=self.front_origin)

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

    def ask(self, method: str, path: str, *, source: str = "127.0.0.1", **more: Any) -> httpx.Response:
        """One request over a connection of its own."""
        transport = httpx.HTTPTransport(local_address=source)
        with httpx.Client(base_url=self.origin, timeout=PATIENCE, transport=transport, trust_env=False) as client:
            return client.request(method, path, **more)

    def outcome(self, path: str, source: str) -> str:
        """The status of an answer to the key, or the name of the error in its place."""
        try:
            return str(self.ask("GET", path, source=source, headers=self.as_key).status_code)
        except httpx.HTTPError as error:
            return type(error).__name__

    @property
    def as_key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"}

    def cpu(self) -> float:
        """Seconds of processor time that the process has used, in steps of a hundredth."""
        return float(sum(psutil.Process(self.pid).cpu_times()[:2]))

    def is_well(self) -> bool:
        """Whether it still answers somebody who did nothing."""
        return self.outcome("/healthz", "127.0.0.250") == "200"
