"""SIGTERM while the database is frozen and says nothing for ever, and while logos are decoded that cost as much as a
logo may; processes whose log nobody reads; and an embedded Postgres that is killed under the product."""

import asyncio
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from lab.kit.processes import postmaster, signalled
from payagg.adapters.image_decoder import SCANS_MAX
from payagg.adapters.postgres.embedded.server import STOP_SECONDS as EMBEDDED_STOP_SECONDS
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.entrypoints.process.server import STOP_SECONDS
from tests.support.http_world import admin_token, bearer
from tests.support.images import a_jpeg_of_scans
from tests.support.ports import free_port
from tests.support.processes import children, is_ready, payagg, serving, started, wait_until, wait_until_two_answer

CALLERS = 240  # more than two rounds of those who share a statement
UPLOADS = 2
REQUESTS = 400  # their lines are more than a pipe holds


@contextmanager
def frozen(state: Path) -> Iterator[None]:
    pid = postmaster(state / "postgres")
    assert pid is not None
    signalled([pid], signal.SIGSTOP)
    try:
        yield
    finally:
        signalled([pid], signal.SIGCONT)


# A process that its supervisor ends in the middle of its stop may print where it stood.
@pytest.mark.error_lines("Traceback (most recent call last):", optional=True)
async def test_processes_end_as_promised_and_answer_what_they_accepted(tmp_path: Path) -> None:
    state, limits = tmp_path / "state", httpx.Limits(max_connections=CALLERS)
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres(state, durable=False))
        migrate(server.url)
        worker = stack.enter_context(started("worker", PAYAGG_DATABASE_URL=server.url))
        serves, origin = stack.enter_context(serving(server.url, "--workers", "2"))
        # Its sweeps have begun: it holds more connections than it started with.
        wait_until(lambda: len([one for one in psutil.Process(worker.pid).net_connections("unix") if one.fd > 2]) > 3)
        stack.enter_context(frozen(state))
        async with httpx.AsyncClient(base_url=origin, trust_env=False, timeout=60, limits=limits) as client:

            async def call() -> int:
                headers = bearer(f"ssk_sand_{secrets.token_hex(24)}")
                answer = await client.post("/api/v1/payments/initiate", json={"amount": 100}, headers=headers)
                return answer.status_code

            calls = [asyncio.create_task(call()) for _ in range(CALLERS)]
            port = int(origin.rpartition(":")[2])
            await asyncio.to_thread(wait_until, lambda: len(clients_of(serves.pid, port)) >= CALLERS)
            for one in (serves, worker):
                one.send_signal(signal.SIGTERM)
            ends = [asyncio.to_thread(one.wait, STOP_SECONDS) for one in (serves, worker)]
            assert await asyncio.gather(*ends) == [0, 0]
            assert set(await asyncio.gather(*calls)) == {503}


def clients_of(pid: int, port: int) -> list[object]:
    """The established connections to `port` that our processes hold."""
    family = [psutil.Process(pid), *psutil.Process(pid).children()]
    return [
        one
        for member in family
        for one in member.net_connections()
        if one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port
    ]


@pytest.mark.release
def test_an_embedded_server_that_is_frozen_ends_with_its_user(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(None, PAYAGG_STATE_DIR=str(state)) as (process, _), frozen(state):
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS + 2 * EMBEDDED_STOP_SECONDS) == 0
    assert postmaster(state / "postgres") is None
    with EmbeddedPostgres(state):
        assert psutil.pid_exists(postmaster(state / "postgres") or 0)


async def test_costly_logos_keep_neither_other_callers_nor_the_end_waiting(database_url: str) -> None:
    costly = a_jpeg_of_scans(SCANS_MAX, (4096, 4096))
    with serving(database_url) as (process, origin):
        async with httpx.AsyncClient(base_url=f"{origin}/api/v1", trust_env=False, timeout=60) as client:
            headers = bearer(admin_token())
            [gateway, *_] = (await client.get("/admin/gateways", headers=headers)).json()["data"]
            place = f"/admin/gateways/{gateway['id']}/logo"
            uploads = [
                asyncio.create_task(client.post(place, headers=headers, files={"file": ("a.jpg", costly)}))
                for _ in range(UPLOADS)
            ]
            await asyncio.to_thread(wait_until, lambda: psutil.Process(process.pid).children())
            assert (await client.get("/admin/gateways", headers=headers)).status_code == 200
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, STOP_SECONDS) == 0
            assert {answer.status_code for answer in await asyncio.gather(*uploads)} <= {201, 400}


def test_processes_whose_log_takes_no_line_answer_and_end(database_url: str) -> None:
    """A supervisor, two that serve, and a worker: nobody reads, and not even a first line fits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b" " * 4096)
    os.set_blocking(writer, True)
    port = free_port()
    command = ("serve", "--workers", "2", "--port", str(port))
    with started(*command, stderr=writer, PAYAGG_DATABASE_URL=database_url) as process:
        os.close(writer)
        wait_until(lambda: is_ready(port) and len(children(process.pid)) == 3)
        wait_until(lambda: any(psutil.Process(child).nice() != os.nice(0) for child in children(process.pid)))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client:
            assert {client.get("/healthz").status_code for _ in range(REQUESTS)} == {200}
    os.close(reader)


@pytest.mark.release
@pytest.mark.error_lines("the embedded Postgres ended; starting it again")
# The second kill may come before the restart after the first has seen it answer.
@pytest.mark.error_lines("the embedded Postgres did not start", optional=True)
def test_a_server_whose_embedded_postgres_is_killed_answers_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    made = payagg("doctor", PAYAGG_STATE_DIR=str(state)).stdout
    assert f"Making a Postgres database in {state}/postgres" in made
    with serving(None, "--workers", "2", PAYAGG_STATE_DIR=str(state)) as (process, origin):
        # One that was still starting would end, as is right, and its supervisor would log that.
        wait_until_two_answer(process, origin)
        wait_until(
            lambda: any(psutil.Process(child).nice() != psutil.Process().nice() for child in children(process.pid))
        )
        for _ in range(2):
            killed = postmaster(state / "postgres")
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            wait_until(partial(is_another_ready, state, killed, origin))
            with httpx.Client(base_url=f"{origin}/api/v1", trust_env=False) as client:
                # The pool's connections are all lost: each call makes one of its own, as often as need be.
                wait_until(partial(is_unknown, client, "PAY-20250101-ABCDEF"))
    assert postmaster(state / "postgres") is None
    EmbeddedPostgres(state).destroy()


def is_another_ready(state: Path, killed: int, origin: str) -> bool:
    return is_ready(int(origin.rpartition(":")[2])) and postmaster(state / "postgres") != killed


def is_unknown(client: httpx.Client, reference: str) -> bool:
    return client.get(f"/public/payments/{reference}").status_code == 404
