"""The front that we ship a file for: a real HAProxy with deploy/haproxy.cfg, before a server that notes what comes."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lab.kit.processes import Processes, until, with_addresses
from tests.support.machine import ROOT, program
from tests.support.ports import free_port

READ = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n" + b"x" * 3000
EACH = 100  # connections of one address


@contextmanager
def a_server() -> Iterator[tuple[int, list[str]]]:
    """Its port, and the methods of the requests that reached it, checks aside."""
    seen = list[str]()

    class NotingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            self.do_GET()

        def log_request(self, *_: object) -> None:
            if self.path != "/readyz":
                seen.append(self.command)

    class QuietServer(ThreadingHTTPServer):
        daemon_threads, block_on_close, request_queue_size = True, False, 1000

        def handle_error(self, *_: object) -> None:
            """A check that HAProxy ends as soon as it has its answer is none."""

    with QuietServer(("127.0.0.1", 0), NotingHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, seen
        server.shutdown()


@contextmanager
def a_front(folder: Path, server: int, change: Callable[[str], str] = str) -> Iterator[tuple[int, Processes]]:
    port, file = free_port(), folder / "haproxy.cfg"
    text = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
    file.write_text(change(with_addresses(text, f"127.0.0.1:{port}", [f"127.0.0.1:{server}"] * 3)))
    with Processes(folder) as processes:
        processes.start("haproxy", [program("haproxy"), "-db", "-f", str(file)])
        until(lambda: "200" in answer(port, "127.0.0.250", READ), "HAProxy started")
        yield port, processes


def opened(port: int, address: str, sent: bytes) -> socket.socket:
    """A connection from `address` on which that was sent, as far as it was taken."""
    client = socket.socket()
    client.settimeout(30)
    client.bind((address, 0))
    with suppress(ConnectionError):
        client.connect(("127.0.0.1", port))
        client.sendall(sent)
    return client


def status(client: socket.socket) -> str:
    """Of the answer; empty where the connection was refused or closed in its place."""
    try:
        return client.recv(4096).decode("latin-1").partition(" ")[2][:3]
    except TimeoutError:
        raise
    except OSError:
        return ""


def answer(port: int, address: str, sent: bytes) -> str:
    with closing(opened(port, address, sent)) as client:
        return status(client)


def test_bodies_that_stop_and_20_000_header_fields_reach_no_server(tmp_path: Path) -> None:
    def hurried(text: str) -> str:
        return text.replace("timeout http-request 10s", "timeout http-request 1s")

    with a_server() as (server, seen), a_front(tmp_path, server, hurried) as (port, _), ExitStack() as stack:
        seen.clear()
        halves = [
            stack.enter_context(closing(opened(port, f"127.0.0.{2 + number % 3}", HALF))) for number in range(210)
        ]
        assert answer(port, "127.0.0.9", READ[:-2] + b"a:\r\n" * 20_000 + b"\r\n") in ("400", "")
        assert answer(port, "127.0.0.9", READ) == "200"
        assert {status(half) for half in halves} == {"408"}
        assert seen == ["GET"]


@contextmanager
def share(open_one: Callable[[int], socket.socket]) -> Iterator[None]:
    """More connections than one may have are open: some are served, and no more than one may have."""
    with ExitStack() as stack:
        many = [stack.enter_context(closing(open_one(number))) for number in range(1, EACH + 31)]
        statuses = [status(client) for client in many]
        assert set(statuses) == {"200", ""}
        assert statuses.count("200") <= EACH
        yield


def test_an_address_has_its_share_of_connections(tmp_path: Path) -> None:
    with a_server() as (server, _), a_front(tmp_path, server) as (port, _):
        assert answer(port, "127.0.0.2", READ) == "200"
        with share(lambda _: opened(port, "127.0.0.2", READ)):
            assert answer(port, "127.0.0.3", READ) == "200"


def test_an_ipv6_network_of_64_bits_has_the_share_of_one_address(tmp_path: Path) -> None:
    def proxied(text: str) -> str:
        """The machine has one IPv6 address, so a header of the PROXY protocol gives others, once it was read."""
        return text.replace(" tcp-request connection ", " tcp-request session ").replace(
            "stick-table", "bind unix@front.sock accept-proxy\n    stick-table"
        )

    def from_network(number: int, host: int) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(30)
        client.connect(str(tmp_path / "front.sock"))
        with suppress(ConnectionError):
            client.sendall(f"PROXY TCP6 2001:db8:0:{number}::{host:x} ::1 5000 443\r\n".encode() + READ)
        return client

    with (
        a_server() as (server, _),
        a_front(tmp_path, server, proxied),
        share(lambda host: from_network(1, host)),
        closing(from_network(2, 1)) as other,
    ):
        assert status(other) == "200"


def test_a_request_on_a_connection_from_before_a_reload_is_answered(tmp_path: Path) -> None:
    with (
        a_server() as (server, _),
        a_front(tmp_path, server) as (port, processes),
        closing(opened(port, "127.0.0.2", READ)) as client,
    ):
        assert status(client) == "200"
        processes.running["haproxy"].send_signal(signal.SIGUSR1)  # as a reload ends the process before
        until(lambda: answer(port, "127.0.0.2", READ) == "", "it takes no more connections")
        client.sendall(READ)
        assert status(client) == "200"


@pytest.mark.parametrize("path", ["/internal/cell", "/%69nternal/cell"])
def test_what_is_for_cells_is_nobody_elses(tmp_path: Path, path: str) -> None:
    with a_server() as (server, _), a_front(tmp_path, server) as (port, _):
        assert answer(port, "127.0.0.2", READ.replace(b" / ", f" {path} ".encode())) == "404"
