"""SIGTERM while the database is frozen: it accepts connections and packets, and says nothing for ever."""

import asyncio
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from lab.kit.processes import postmaster, signalled
from payagg.adapters.postgres.embedded.server import STOP_SECONDS as EMBEDDED_STOP_SECONDS
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.entrypoints.process.server import STOP_SECONDS
from tests.support.http_world import bearer
from tests.support.processes import serving, started, wait_until

CALLERS = 240  # more than two rounds of those who share a statement


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("frozen") / "state"


@pytest.fixture(scope="module")
def server(state: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(state) as running:
        migrate(running.url)
        yield running


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
async def test_processes_end_as_promised_and_answer_what_they_accepted(server: EmbeddedPostgres, state: Path) -> None:
    with serving(server.url, "--workers", "2") as (process, origin), frozen(state):
        limits = httpx.Limits(max_connections=CALLERS)
        async with httpx.AsyncClient(base_url=origin, trust_env=False, timeout=60, limits=limits) as client:

            async def call() -> int:
                headers = bearer(f"ssk_sand_{secrets.token_hex(24)}")
                answer = await client.post("/api/v1/payments/initiate", json={"amount": 100}, headers=headers)
                return answer.status_code

            calls = [asyncio.create_task(call()) for _ in range(CALLERS)]
            port = int(origin.rpartition(":")[2])
            await asyncio.to_thread(wait_until, lambda: len(clients_of(process.pid, port)) >= CALLERS)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, STOP_SECONDS) == 0
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


def test_a_worker_ends_as_promised(server: EmbeddedPostgres, state: Path) -> None:
    with started("worker", PAYAGG_DATABASE_URL=server.url) as process:
        # Its sweeps have begun: it holds more connections than it started with.
        wait_until(lambda: len([one for one in psutil.Process(process.pid).net_connections("unix") if one.fd > 2]) > 3)
        with frozen(state):
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_SECONDS) == 0


@pytest.mark.release
def test_an_embedded_server_that_is_frozen_ends_with_its_user(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(None, PAYAGG_STATE_DIR=str(state)) as (process, _), frozen(state):
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS + 2 * EMBEDDED_STOP_SECONDS) == 0
    assert postmaster(state / "postgres") is None
    with EmbeddedPostgres(state):
        assert psutil.pid_exists(postmaster(state / "postgres") or 0)
