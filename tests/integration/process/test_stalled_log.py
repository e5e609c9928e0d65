"""Whoever reads a process's log may stand still: requests are answered, and the process ends as it does otherwise."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil

from tests.support.ports import free_port
from tests.support.processes import PATIENCE, children, is_ready, started, wait_until

REQUESTS = 400  # their lines are more than a pipe holds


@contextmanager
def unread(*arguments: str, filled: bool, **settings: str) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    """`payagg` whose stderr nobody reads, and the end that could be read; `filled`: not even a first line fits."""
    reader, writer = os.pipe()
    if filled:
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b" " * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
    with started(*arguments, stderr=writer, **settings) as process:
        os.close(writer)
        yield process, reader
    os.close(reader)


def lines_in(reader: int) -> list[dict[str, object]]:
    os.set_blocking(reader, False)
    text = b""
    while part := os.read(reader, 65536):
        text += part
    # The last one may have been cut, as the process ended while it was written.
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


def test_a_server_whose_log_nobody_reads_answers_everybody_and_ends(database_url: str) -> None:
    port = free_port()
    with unread("serve", "--port", str(port), filled=False, PAYAGG_DATABASE_URL=database_url) as (process, reader):
        wait_until(lambda: is_ready(port))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client:
            for _ in range(REQUESTS):
                assert client.get("/api/v1/payments/context").status_code == 401
            assert client.get("/healthz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        lines = lines_in(reader)
    assert len([line for line in lines if line.get("route") == "/api/v1/payments/context"]) > 100


def test_processes_whose_log_takes_no_line_answer_and_end(database_url: str) -> None:
    """A supervisor, two that serve, and a worker."""
    port, command = free_port(), ("serve", "--workers", "2", "--port")
    with unread(*command, str(port), filled=True, PAYAGG_DATABASE_URL=database_url) as (process, _):
        wait_until(lambda: is_ready(port) and len(children(process.pid)) == 3)
        wait_until(lambda: any(psutil.Process(child).nice() != os.nice(0) for child in children(process.pid)))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client:
            assert {client.get("/healthz").status_code for _ in range(REQUESTS)} == {200}
