"""What an upgrade in order asks of a process: to say that it is about to stop, and to wait for the schema it needs."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import httpx
import psycopg
import pytest

from payagg.adapters.postgres.migrations import HEAD
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.ports import free_port
from tests.support.processes import PATIENCE, SECRETS, children, environment, is_ready, serving, wait_until

ASKED = 20  # times, on a connection each, so that every process of a server is asked
LONG = {"PAYAGG_SHUTDOWN_DELAY": "300"}
_numbers = count(1)


def asked(origin: str, path: str) -> set[int]:
    """The statuses of answers on new connections."""
    with httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)) as client:
        return {client.get(origin + path).status_code for _ in range(ASKED)}


def set_revision(database_url: str, revision: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [revision])


@contextmanager
def started(database_url: str, *arguments: str) -> "Iterator[tuple[subprocess.Popen[str], int]]":
    """A command that logs to its standard error, not ready perhaps, and its port."""
    port = free_port()
    place = ("--port", str(port)) if arguments[0] == "serve" else ()
    process = subprocess.Popen(
        [sys.executable, "-m", "payagg", *arguments, *place],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**SECRETS, PAYAGG_DATABASE_URL=database_url, PAYAGG_SHUTDOWN_DELAY="0"),
    )
    try:
        yield process, port
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()


def is_alive(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def empty_url(postgres: str) -> str:
    """A database without a schema."""
    name = f"upgrade_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.replace("/payagg?", f"/{name}?")


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")])
def test_a_server_that_is_about_to_stop_is_not_ready_and_goes_on_answering(
    database_url: str, arguments: tuple[str, ...]
) -> None:
    with serving(database_url, *arguments, **LONG) as (process, origin):
        assert asked(origin, "/readyz") == {200}
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: asked(origin, "/readyz") == {503})
        assert "about to stop" in httpx.get(f"{origin}/readyz", trust_env=False).text
        assert asked(origin, "/healthz") == {200}
        assert asked(origin, "/api/v1/admin/gateways") == {401}
        # Whoever does not want to wait presses Ctrl-C.
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_processes_are_replaced_while_others_are_ready_and_not_before_the_migration(database_url: str) -> None:
    with serving(database_url, "--workers", "2", **LONG) as (process, origin):
        seen: set[int] = set()

        def are_replaced(before: set[int]) -> bool:
            seen.update(asked(origin, "/readyz"))
            return len(children(process.pid)) == 3 and not children(process.pid) & before

        first = children(process.pid)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: are_replaced(first))
        assert seen == {200}
        # Each of them is ready: only then its predecessor went.
        second = children(process.pid)
        for revision in ("0001", HEAD, "0001"):
            set_revision(database_url, revision)  # the package was replaced by one that needs more
            if revision == HEAD:
                wait_until(lambda: are_replaced(second))
                continue
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(children(process.pid)) == 2 * 3)
            # The new ones wait, and those that are there go on.
            assert asked(origin, "/api/v1/admin/gateways") == {401}
        assert not children(process.pid) & second
        # It stops while new processes wait.
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")])
def test_a_server_that_starts_before_the_migration_waits_for_it(empty_url: str, arguments: tuple[str, ...]) -> None:
    with started(empty_url, "serve", *arguments) as (process, port):
        wait_until(lambda: is_alive(port))
        origin = f"http://127.0.0.1:{port}"
        assert asked(origin, "/readyz") == asked(origin, "/api/v1/admin/gateways") == {503}
        answer = httpx.post(f"{origin}/api/v1/payments/initiate", json={"amount": 100}, trust_env=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert answer.headers["retry-after"]
        migrate(empty_url)
        wait_until(lambda: is_ready(port))
        assert process.poll() is None
        assert asked(origin, "/api/v1/admin/gateways") == {401}


@pytest.mark.parametrize("arguments", [("serve", "--workers", "2"), ("worker",)])
def test_a_process_that_waits_stops_when_it_is_told_to(empty_url: str, arguments: tuple[str, ...]) -> None:
    with started(empty_url, *arguments) as (process, _):
        assert process.stderr is not None
        assert any("waiting for `payagg migrate`" in line for line in process.stderr)


def test_a_worker_that_starts_before_the_migration_waits_for_it(empty_url: str) -> None:
    with started(empty_url, "worker") as (process, _):
        assert process.stderr is not None
        assert any("waiting for `payagg migrate`" in line for line in process.stderr)
        migrate(empty_url)
        assert any("the schema is current" in line for line in process.stderr)
        assert process.poll() is None
