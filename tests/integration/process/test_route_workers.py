"""`payagg route` as several processes before one cell, which a small server plays."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.processes import (
    PATIENCE,
    children,
    environment,
    running,
    wait_until,
    wait_until_two_answer,
)

TOKEN = "metrics-of-the-router"
PAGE, SLOW_PAGE = "/checkout/PAY-20250131-7K2M9X", "/checkout/PAY-20250131-SLOW22"
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")


@dataclass
class PlayedCell:
    """Answers 200; to SLOW_PAGE once `released` is set."""

    origin: str = ""
    asked: threading.Event = field(default_factory=threading.Event)  # for the slow page
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str) -> bytes:
        if path == SLOW_PAGE:
            self.asked.set()
            self.released.wait(PATIENCE)
        return b"page"


@contextmanager
def a_cell() -> Iterator[PlayedCell]:
    cell = PlayedCell()

    class CellHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = cell.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), CellHandler) as server:
        server.daemon_threads = True
        cell.origin = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield cell
        cell.released.set()
        server.shutdown()


def settings(*cells: str) -> dict[str, str]:
    names = ("PAY", "PBX")
    return {
        "PAYAGG_CELLS": ",".join(f"{name}={origin}" for name, origin in zip(names, cells, strict=False)),
        "PAYAGG_CELL_SECRET": "a-secret-between-the-cells-of-a-test",
        "PAYAGG_METRICS_TOKEN": TOKEN,
    }


def status_of(url: str) -> int:
    """On a connection of its own, which any of the processes may take."""
    return httpx.get(url, trust_env=False, timeout=PATIENCE).status_code


def told(origin: str) -> str:
    return httpx.get(f"{origin}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False).text


def wait_until_told(origin: str, pages: int) -> None:
    """Each request is counted after its answer."""
    line = f'payagg_route_requests_total{{by="reference",cell="PAY",status="200"}} {pages}.0\n'
    wait_until(lambda: line in told(origin))


def wait_until_two_without(process: "subprocess.Popen[bytes]", gone: set[int]) -> None:
    wait_until(lambda: len(children(process.pid)) == 2 and not children(process.pid) & gone)


@pytest.mark.error_lines("died")
def test_killed_and_old_processes_are_replaced_and_what_they_counted_stays(tmp_path: Path) -> None:
    with (
        a_cell() as cell,
        running("route", free_port(), "--workers", "2", **settings(cell.origin), TMPDIR=str(tmp_path)) as started,
    ):
        process, origin = started
        wait_until_two_answer(process, origin)
        first = children(process.pid)
        assert {Path(f"/proc/{child}/cmdline").read_text().split("\0")[3] for child in first} == {"router"}
        assert [status_of(origin + PAGE) for _ in range(5)] == [200] * 5
        wait_until_told(origin, 5)
        os.kill(min(first), signal.SIGKILL)
        assert [status_of(origin + PAGE) for _ in range(5)] == [200] * 5
        wait_until_two_without(process, {min(first)})
        wait_until_told(origin, pages := 10)
        first = children(process.pid)
        process.send_signal(signal.SIGHUP)
        while len(children(process.pid)) != 2 or children(process.pid) & first:
            assert status_of(origin + PAGE) == 200
            pages += 1
        wait_until_told(origin, pages)
        assert list(tmp_path.iterdir()) != []
    assert list(tmp_path.iterdir()) == []


def test_processes_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    given = settings("http://127.0.0.1:9") | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "payagg", "route", "--port", str(free_port()), "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment(**given)) as process:
        wait_until(lambda: len(children(process.pid)) == 2)
        orphans = children(process.pid)
        process.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans))


def test_a_stop_is_announced_and_answers_what_was_accepted() -> None:
    with a_cell() as cell:
        given = settings(cell.origin) | {"PAYAGG_SHUTDOWN_DELAY": "4"}
        with running("route", free_port(), "--workers", "2", **given) as (process, origin):
            answers: list[int] = []
            slow = threading.Thread(target=lambda: answers.append(status_of(origin + SLOW_PAGE)))
            slow.start()
            assert cell.asked.wait(PATIENCE)
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: status_of(f"{origin}/readyz") == 503)
            assert status_of(f"{origin}/healthz") == 200
            assert status_of(origin + PAGE) == 200
            wait_until(lambda: is_closed(origin))
            assert process.poll() is None
            cell.released.set()
            slow.join(PATIENCE)
            assert answers == [200]
            assert process.wait(PATIENCE) == 0


def is_closed(origin: str) -> bool:
    try:
        status_of(f"{origin}/healthz")
    except httpx.ConnectError:
        return True
    return False


def test_checks_are_not_counted_and_what_can_be_known_begins_at_zero() -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    with a_cell() as cell, running("route", free_port(), **settings(cell.origin, nobody)) as (_, origin):
        begun = told(origin)
        assert "payagg_route_requests_total{" not in begun
        assert 'payagg_route_unreachable_total{cell="PBX"} 0.0\n' in begun
        assert 'payagg_route_lookups_total{by="key",result="not answered"} 0.0\n' in begun
        assert status_of(origin + PAGE.replace("PAY", "PBX")) == 503
        assert 'payagg_route_unreachable_total{cell="PBX"} 1.0\n' in told(origin)
