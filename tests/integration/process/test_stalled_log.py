"""Whoever reads a process's log may stand still: requests are answered, and the process ends as it does otherwise."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import psutil

from tests.support.ports import free_port
from tests.support.processes import children, is_ready, started, wait_until

REQUESTS = 400  # their lines are more than a pipe holds


@contextmanager
def unread(*arguments: str, **settings: str) -> "Iterator[subprocess.Popen[bytes]]":
    """`payagg` whose stderr nobody reads: not even a first line fits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b" " * 4096)
    os.set_blocking(writer, True)
    with started(*arguments, stderr=writer, **settings) as process:
        os.close(writer)
        yield process
    os.close(reader)


def test_processes_whose_log_takes_no_line_answer_and_end(database_url: str) -> None:
    """A supervisor, two that serve, and a worker."""
    port, command = free_port(), ("serve", "--workers", "2", "--port")
    with unread(*command, str(port), PAYAGG_DATABASE_URL=database_url) as process:
        wait_until(lambda: is_ready(port) and len(children(process.pid)) == 3)
        wait_until(lambda: any(psutil.Process(child).nice() != os.nice(0) for child in children(process.pid)))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client:
            assert {client.get("/healthz").status_code for _ in range(REQUESTS)} == {200}
