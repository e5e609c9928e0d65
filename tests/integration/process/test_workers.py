"""`payagg serve` as several processes under load: restarts, stops, and what it holds."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.process.server import WORKER_NICENESS
from tests.support.assembly import services_over
from tests.support.http_world import Api, bearer
from tests.support.ports import free_port
from tests.support.postgres_rules import more_roles
from tests.support.postgres_world import count
from tests.support.processes import (
    SECRETS,
    a_token,
    children,
    is_ready,
    payagg,
    serving,
    started,
    wait_until,
    wait_until_two_answer,
)

CLIENTS = 16
POOL = 4
PATIENCE = 60
NICENESS_MAX = 19
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")


@dataclass
class LoadClient:
    """Initiates payments one after the other on a connection that it keeps for as long as the server does."""

    origin: str
    key: str
    answers: int = 0
    is_over: bool = False
    faults: list[str] = field(default_factory=list)
    _answered: int = 0  # on the connection there is

    async def run(self) -> None:
        while not self.is_over:
            try:
                reader, writer = await connected(self.origin)
            except OSError as error:
                self.faults.append(f"refused: {error}")
                return
            self._answered = 0
            with suppress(OSError):
                await self._use(reader, writer)
            writer.close()

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not self.is_over:
            try:
                writer.write(initiation(self.key))
                status, headers = await answer(reader)
            except (OSError, asyncio.IncompleteReadError) as error:
                # Before a first answer the connection may have waited in vain to be accepted.
                kind = "dropped" if self._answered else "unaccepted"
                self.faults.append(f"{kind}: {error!r}")
                return
            assert status == 201
            self.answers += 1
            self._answered += 1
            if headers.get("connection") == "close":
                return


async def connected(origin: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(origin)
    return await asyncio.open_connection(address.hostname, address.port)


def initiation(key: str) -> bytes:
    head = f"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: 17\r\n\r\n".encode() + b'{"amount":150000}'


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers


async def until(clients: list[LoadClient], answers: int) -> None:
    """Returns when each client has had so many more answers, or a fault."""
    wanted = [client.answers + answers for client in clients]
    for _ in range(PATIENCE * 50):
        if all(client.answers >= least or client.faults for client, least in zip(clients, wanted, strict=True)):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("too few answers")


def restart(process: "subprocess.Popen[bytes]") -> None:
    before = children(process.pid)
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(children(process.pid)) == 3 and not children(process.pid) & before)


def niceness(pid: int) -> list[tuple[str, int]]:
    """The role of each child and its niceness."""
    return sorted(
        (Path(f"/proc/{child}/cmdline").read_text().split("\0")[3], psutil.Process(child).nice())
        for child in children(pid)
    )


def api_of(origin: str) -> str:
    """Where the server says that its API is."""
    return str(httpx.get(origin, trust_env=False).json()["data"]["api"])


async def test_a_restart_and_a_stop_under_load_answer_what_was_accepted(
    database_url: str, store: PostgresStore
) -> None:
    """And before them the processes hold no more connections to Postgres than their pools."""
    held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'payagg'"
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as watcher:
        async with httpx.AsyncClient() as unused:
            shop = await Api(services_over(store), "", unused).open_shop()
        await store.close()
        with serving(database_url, "--workers", "2", PAYAGG_POOL_SIZE=str(POOL)) as (process, origin):
            clients = [LoadClient(origin, shop.sandbox) for _ in range(CLIENTS * 2)]
            loads = [asyncio.create_task(client.run()) for client in clients]
            most = 0
            while min(client.answers for client in clients) < 5 and not any(client.faults for client in clients):
                row = await (await watcher.execute(held)).fetchone()
                assert row is not None
                most = max(most, row[0])
                await asyncio.sleep(0.02)
            assert 3 <= most <= POOL * 3
            await asyncio.to_thread(restart, process)
            await until(clients, 3)
            # A restart refuses no connection either.
            assert [fault for client in clients for fault in client.faults] == []
            process.send_signal(signal.SIGTERM)
            await asyncio.gather(*loads)
            assert await asyncio.to_thread(process.wait, PATIENCE) == 0
    assert [fault for client in clients for fault in client.faults if fault.startswith("dropped")] == []
    # Nothing was done without its answer either.
    assert await count(database_url, "payments") == sum(client.answers for client in clients)


def test_a_restart_reads_the_files_of_settings_anew(postgres: str, database_url: str, tmp_path: Path) -> None:
    """A wrong one is told in lines, while the old processes go on."""
    url, log, port = tmp_path / "url", tmp_path / "log", free_port()
    url.write_text(database_url)
    held = "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    with (
        more_roles(postgres, database_url) as (other, _),
        psycopg.connect(database_url, autocommit=True) as watcher,
        log.open("wb") as file,
        started(
            *("serve", "--port", str(port), "--workers", "2"), PAYAGG_DATABASE_URL_FILE=str(url), stderr=file
        ) as process,
    ):

        def roles() -> set[str]:
            return {role for (role,) in watcher.execute(held, (watcher.info.backend_pid,))}

        wait_until(lambda: is_ready(port))
        assert roles() == {"payagg"}
        url.write_text(other)
        restart(process)
        wait_until(lambda: roles() == {"payagg_b"})
        url.write_text("mysql://h/d")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: b'"not started"' in log.read_bytes())
        assert is_ready(port)
    assert b"PAYAGG_DATABASE_URL must be a postgresql:// address." in log.read_bytes()
    assert b"Traceback" not in log.read_bytes()


def test_one_process_serves_with_its_gateways_until_its_terminal_is_closed(database_url: str) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and so do we then
    try:
        with serving(database_url) as (process, origin):
            headers = bearer(a_token("admin", "--sub", "root", "--role", "ADMIN"))
            listed = httpx.get(f"{origin}/api/v1/admin/gateways", headers=headers, trust_env=False)
            assert [one["slug"] for one in listed.json()["data"]] == ["builtin", "provider_a", "provider_b"]
            assert "server" not in listed.headers
            assert api_of(origin) == f"{origin}/api/v1"
            process.send_signal(signal.SIGHUP)
            assert process.wait(PATIENCE) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_whose_processes_never_start_ends(database_url: str) -> None:
    wrong = {"PAYAGG_DATABASE_URL": database_url, "PAYAGG_JWT_JWKS": "/nowhere", **SECRETS}
    told = payagg("serve", "--port", str(free_port()), "--workers", "2", **wrong)
    assert (told.returncode, told.stderr.splitlines()[-1].startswith("payagg: A ")) == (1, True)
    assert "PAYAGG_JWT_JWKS cannot be read (No such file or directory)." in told.stderr


@pytest.mark.error_lines("died")
async def test_two_serving_processes_have_one_worker_and_stop_within_ten_seconds_when_idle(database_url: str) -> None:
    with serving(database_url, "--workers", "2") as (process, origin):
        wait_until(lambda: len(children(process.pid)) == 3)
        # Requests go first: a payer waits for them. The tests themselves may have been told to step back.
        ours = psutil.Process().nice()
        back = min(ours + WORKER_NICENESS, NICENESS_MAX)
        wait_until(lambda: niceness(process.pid) == [("web", ours), ("web", ours), ("worker", back)])
        # Linux weighs priorities within a session alone (sched_autogroup); a terminal's Ctrl-C goes to a process group.
        assert {os.getsid(child) for child in children(process.pid)} == {os.getsid(process.pid)}
        assert all(os.getpgid(child) == child for child in children(process.pid))
        assert api_of(origin) == f"{origin}/api/v1"
        wait_until_two_answer(process, origin)
        killed = min(children(process.pid))
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(children(process.pid) - {killed}) == 3)
        await asyncio.to_thread(wait_until, lambda: is_ready(int(origin.rpartition(":")[2])))
        last = children(process.pid)
        idle = [await connected(origin) for _ in range(CLIENTS)]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
    assert not any(psutil.pid_exists(pid) for pid in last)
    for _, writer in idle:
        writer.close()
