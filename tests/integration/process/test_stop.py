"""SIGTERM while the database is frozen: it accepts connections and packets, and says nothing for ever."""

import asyncio
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
