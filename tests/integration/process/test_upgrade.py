"""What an upgrade in order asks of a process: to say that it is about to stop, and to wait for the schema it needs."""

import signal
from subprocess import PIPE

import httpx
import pytest

from payagg.adapters.postgres.migrations import HEAD
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.ports import free_port
from tests.support.postgres_world import execute
from tests.support.processes import PATIENCE, answers, children, is_ready, serving, started, wait_until

ASKED = 20  # times, on a connection each, so that every process of a server is asked
LONG = {"PAYAGG_SHUTDOWN_DELAY": "300"}


def asked(origin: str, path: str) -> set[int]:
    """The statuses of answers on new connections."""
    with httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0), verify=False) as client:
        return {client.get(origin + path).status_code for _ in range(ASKED)}


def set_revision(database_url: str, revision: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = %s", values=[revision])


def test_a_server_that_is_about_to_stop_is_not_ready_and_goes_on_answering(database_url: str) -> None:
    with serving(database_url, **LONG) as (process, origin):
        assert asked(origin, "/readyz") == {200}
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: asked(origin, "/readyz") == {503})
        assert "about to stop" in httpx.get(f"{origin}/readyz", trust_env=False).text
        assert (asked(origin, "/healthz"), asked(origin, "/api/v1/admin/gateways")) == ({200}, {401})
        # Whoever does not want to wait presses Ctrl-C.
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_processes_are_replaced_while_others_are_ready_and_not_before_the_migration(database_url: str) -> None:
    with serving(database_url, "--workers", "2", **LONG) as (process, origin):
        seen: set[int] = set()

        def are_replaced() -> bool:
            seen.update(asked(origin, "/readyz"))
            return len(children(process.pid)) == 3 and not children(process.pid) & first

        first = children(process.pid)
        set_revision(database_url, "0001")  # the package was replaced by one that needs more
        process.send_signal(signal.SIGHUP)
        # One of the first may still be starting, and is replaced once it has started.
        wait_until(lambda: len(children(process.pid)) in (2 * 3 - 1, 2 * 3))
        # The new ones wait, and those that are there go on.
        assert asked(origin, "/api/v1/admin/gateways") == {401}
        set_revision(database_url, HEAD)
        wait_until(are_replaced)
        assert seen == {200}
        set_revision(database_url, "0001")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(children(process.pid)) == 2 * 3)
        # It stops while new processes wait; all of them are told at once.
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: asked(origin, "/readyz") == {503})
        assert asked(origin, "/healthz") == {200}
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_a_server_that_starts_before_the_migration_waits_for_it(empty_url: str) -> None:
    port = free_port()
    with started("serve", "--port", str(port), PAYAGG_DATABASE_URL=empty_url) as process:
        wait_until(lambda: answers(port, "/healthz"))
        origin = f"http://127.0.0.1:{port}"
        assert asked(origin, "/readyz") == asked(origin, "/api/v1/admin/gateways") == {503}
        answer = httpx.post(f"{origin}/api/v1/payments/initiate", json={"amount": 100}, trust_env=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert answer.headers["retry-after"]
        migrate(empty_url)
        wait_until(lambda: is_ready(port))
        assert process.poll() is None
        assert asked(origin, "/api/v1/admin/gateways") == {401}


@pytest.mark.parametrize("arguments", [("serve", "--workers", "2", "--port"), ("worker",)])
def test_a_process_that_waits_stops_or_goes_on_when_it_may(empty_url: str, arguments: tuple[str, ...]) -> None:
    port = (str(free_port()),) if "--port" in arguments else ()
    with started(*arguments, *port, stderr=PIPE, PAYAGG_DATABASE_URL=empty_url) as process:
        assert process.stderr is not None
        assert any(b"waiting for `payagg migrate`" in line for line in process.stderr)
        if arguments == ("worker",):
            migrate(empty_url)
            assert any(b"the schema is current" in line for line in process.stderr)
            assert process.poll() is None
