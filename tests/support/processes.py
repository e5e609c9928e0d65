"""`payagg` as an operator runs it: commands, and processes that serve."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from subprocess import PIPE
from tempfile import NamedTemporaryFile
from typing import Any

import httpx
import psutil

from tests.support.assembly import JWT_KEY, KEYS
from tests.support.error_lines import ERROR_LOG
from tests.support.ports import free_port

SECRETS = {
    "PAYAGG_JWT_KEY": JWT_KEY,
    "PAYAGG_JWT_ALGORITHM": "HS256",
    "PAYAGG_ENCRYPTION_KEYS": ",".join(f"{kid}:{base64.b64encode(key).decode()}" for kid, key in KEYS),
}
Command = Callable[..., "subprocess.CompletedProcess[str]"]
Running = tuple["subprocess.Popen[bytes]", str]  # and its origin
PATIENCE = 60


def environment(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PAYAGG_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **settings}


@cache
def _forking() -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.support.forked_command"]
    return subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment())


def payagg(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """A command that ends by itself, run to its end."""
    forking = _forking()
    assert forking.stdin is not None and forking.stdout is not None  # noqa: PT018 - for the type checker
    with NamedTemporaryFile() as output, NamedTemporaryFile() as errors:
        files = {"output": output.name, "errors": errors.name, "seconds": PATIENCE * 2}
        command = {"arguments": arguments, "environment": environment(**settings), **files}
        forking.stdin.write(json.dumps(command) + "\n")
        forking.stdin.flush()
        status = int(forking.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, output.read().decode(), errors.read().decode())


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a command that failed."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("payagg: ")
    return done.stderr


def succeeded(done: "subprocess.CompletedProcess[str]") -> str:
    """What a command said that went well."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def a_token(*arguments: str) -> str:
    """Of `payagg token`, on no database."""
    return payagg("token", *arguments, **SECRETS).stdout.strip()


def serving(database_url: str | None, *arguments: str, **settings: str) -> AbstractContextManager[Running]:
    """`payagg serve`, as `running` has it. Without a URL it is on its embedded Postgres."""
    if database_url is not None:
        settings["PAYAGG_DATABASE_URL"] = database_url
    return running("serve", free_port(), *arguments, **settings)


@contextmanager
def running(command: str, port: int, *arguments: str, **settings: str) -> Iterator[Running]:
    """`payagg serve`, ready; leaving stops it and expects a clean end."""
    with (
        ERROR_LOG.new_file().open("ab") as log,
        started(command, "--port", str(port), *arguments, stderr=log, **settings) as process,
    ):
        wait_until(lambda: is_ready(port))
        yield process, f"http://127.0.0.1:{port}"


@contextmanager
def started(*arguments: str, stderr: Any = subprocess.DEVNULL, **settings: str) -> "Iterator[subprocess.Popen[bytes]]":
    """`payagg` with its secrets, ready or not; leaving stops it and expects a clean end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "payagg", *arguments],
        stderr=stderr,
        env=environment(**(SECRETS | {"PAYAGG_SHUTDOWN_DELAY": "0"} | settings)),
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def is_ready(port: int) -> bool:
    return answers(port, "/readyz")


def answers(port: int, path: str) -> bool:
    """With 200."""
    try:
        # Who verifies reads all authorities first: 30 ms of CPU each time, beside the process that is waited for.
        return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, verify=False).status_code == 200
    except httpx.TransportError:
        return False


def wait_until(holds: Callable[[], object]) -> None:
    for _ in range(PATIENCE * 10):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to hold")


def children(pid: int) -> set[int]:
    return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def wait_until_two_answer(process: "subprocess.Popen[bytes]", origin: str) -> None:
    """Each of two processes that answer at `origin` has accepted a connection. Until then, one that meets trouble has
    not started; afterwards it died."""
    with ExitStack() as stack:

        def have_accepted() -> bool:
            stack.enter_context(httpx.Client(trust_env=False, timeout=PATIENCE, verify=False)).get(f"{origin}/healthz")
            held = [psutil.Process(child).net_connections() for child in children(process.pid)]
            return sum(any(one.status == psutil.CONN_ESTABLISHED for one in each) for each in held) == 2

        wait_until(have_accepted)
