"""Clients that do not read: what is held for them is let go, and who reads slowly gets all of the answer."""

import asyncio
import gc
import socket
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from payagg.adapters.system import SystemEntropy
from payagg.application.telemetry import counts
from payagg.entrypoints.http.server import uvicorn_protocol
from payagg.entrypoints.http.server.connections import OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import PIPELINED_MAX
from payagg.entrypoints.process.http_server import UNSENT_BYTES, http_server, listen
from tests.support.receivers import until

ANSWER = 4_000_000  # bytes, more than any socket keeps
GET = b"GET / HTTP/1.1\r\nhost: shop.example\r\n\r\n"
LAST = GET[:-2] + b"connection: close\r\n\r\n"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}  # as the product


@asynccontextmanager
async def answering(
    size: int, log: Callable[[], None] = lambda: None, **limits: float
) -> AsyncIterator[tuple[tuple[str, int], OpenConnections, list[int]]]:
    """A server whose answers have that many bytes: its address, its connections and the sizes it sent."""
    sent: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        sent.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})
        log()

    server, listener = http_server(app, SystemEntropy("PAY").hex), listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    for name, value in {"watch_seconds": 0.05, **limits}.items():
        setattr(server.server_state, name, value)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield address, server.server_state, sent
    finally:
        server.should_exit = True
        await serving


async def connected(address: tuple[str, int], keeps: int = 4096) -> socket.socket:
    """A client whose own machine keeps little of an answer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, keeps)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, address)
    return client


def held(address: tuple[str, int], client: socket.socket) -> int | None:
    """Bytes that the kernel keeps for this client on the server's side, None when that side is gone."""
    ends = [f":{address[1]:04X}", f":{client.getsockname()[1]:04X}"]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if local.endswith(ends[0]) and remote.endswith(ends[1]):
            return int(queues.partition(":")[0], 16)
    return None


async def drip(client: socket.socket, size: int, state: OpenConnections) -> None:
    """Reads so much of its answer twenty times a second, until the server lets go. The answer never ends in order."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30):
        while state.connections:
            assert await loop.sock_recv(client, size) != b""
            await asyncio.sleep(0.05)
    client.setblocking(True)
    with pytest.raises(ConnectionError):
        client.makefile("rb").read()  # what had come already, then the reset


@pytest.mark.rule("access.33")
@pytest.mark.parametrize(("asked", "read"), [(GET * 50, 24), (LAST, 1)], ids=["50", "close"])
async def test_who_hardly_reads_is_given_up_and_nothing_is_held_for_him(asked: bytes, read: int) -> None:
    counts.clear()
    with structlog.testing.capture_logs() as lines:
        async with answering(ANSWER, unread_seconds=0.5) as (address, state, _):
            with await connected(address) as client:
                client.send(asked)
                await until(lambda: bool(held(address, client)))
                assert UNSENT_BYTES / 2 < (held(address, client) or 0) < 4 * UNSENT_BYTES
                await drip(client, read, state)
                assert held(address, client) is None
            assert counts["slow_readers",] == 1
    (line,) = [line for line in lines if line["event"] == "slow reader"]
    assert line["client"] == "127.0.0.1"
    assert line["unread"] > UNSENT_BYTES / 2


async def test_an_answer_that_only_the_kernel_holds_is_watched_as_well() -> None:
    # This process has written all of it, and closed the connection as far as the client can tell.
    async with answering(UNSENT_BYTES // 2, unread_seconds=0.5) as (address, state, _):
        with await connected(address) as client:
            client.send(LAST)
            await until(lambda: bool(held(address, client)))
            await drip(client, 1, state)
            assert held(address, client) is None


@pytest.mark.rule("access.33")
async def test_ten_kilobytes_a_second_are_enough() -> None:
    counts.clear()
    loop = asyncio.get_running_loop()
    # Over three seconds and not less: a machine makes room for more in steps of some kilobytes.
    async with answering(ANSWER, unread_seconds=3.0) as (address, _, _):
        with await connected(address, keeps=16 * 1024) as client:
            client.send(LAST)
            got = b""
            for _ in range(40):
                got += await loop.sock_recv(client, 1000)
                await asyncio.sleep(0.1)
            while part := await loop.sock_recv(client, 65536):
                got += part
    assert got.endswith(b"\r\n\r\n" + b"x" * ANSWER)
    assert counts["slow_readers",] == 0


async def test_the_more_is_unread_the_faster_everybody_must_read() -> None:
    """Twenty kilobytes a second, which are enough while little is held in all."""
    counts.clear()
    async with answering(ANSWER, unread_seconds=3.0, unread_max=ANSWER // 100) as (address, state, _):
        with await connected(address, keeps=16 * 1024) as client:
            client.send(GET)
            await drip(client, 1000, state)
    assert counts["slow_readers",] == 1


@pytest.mark.rule("access.34")
@pytest.mark.parametrize(
    ("asked", "answers"),
    [(GET * 100, PIPELINED_MAX + 1), (GET + b"\x00nonsense\r\n\r\n", 1)],
    ids=["too many", "no request"],
)
async def test_few_requests_may_wait_on_a_connection(asked: bytes, answers: int) -> None:
    async with answering(10) as (address, _, sent):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(asked)
        async with asyncio.timeout(30):
            told = await reader.read()
        writer.close()
    # The answers come in order, then the end: a client sends the others again.
    assert told.startswith(b"HTTP/1.1 200")
    assert told.count(b"HTTP/1.1 200") == len(sent) == answers
    assert b" 400 " not in told


async def test_connections_that_are_idle_end_sooner_while_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "CROWDED_KEEP_ALIVE", 0.1)
    async with answering(10, most=5) as (address, state, _):
        clients = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET)
            await reader.readuntil(b"x" * 10)
            clients.append((reader, writer))
            assert len(state.connections) == len(clients)
        assert state.is_crowded
        reading = [asyncio.create_task(reader.read()) for reader, _ in clients]
        ended, kept = await asyncio.wait(reading, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert {one.result() for one in ended} == {b""}
        assert not state.is_crowded
        for _, writer in clients:
            writer.close()
        await asyncio.gather(*kept)


async def test_an_answer_has_left_before_its_log_line_is_written() -> None:
    arrived: list[bytes] = []
    answered = asyncio.Event()

    def log() -> None:
        """Where the access log is written. The client is in this process, so nothing has to travel."""
        answered.set()
        arrived.append(client.recv(65536, socket.MSG_DONTWAIT))

    async with answering(2, log) as (address, _, _):
        with socket.create_connection(address) as client:
            client.sendall(GET)
            async with asyncio.timeout(30):
                await answered.wait()
    assert [answer.endswith(b"\r\n\r\nxx") for answer in arrived] == [True]


@pytest.mark.parametrize(("asked", "answers"), [(GET, 1), (LAST, 1), (b"GET", 0)], ids=["kept", "closed", "begun"])
async def test_nothing_is_kept_of_a_connection_that_has_ended(asked: bytes, answers: int) -> None:
    """The collector comes rarely, and until then each would keep its parser and all of its last request."""
    async with answering(2) as (address, state, sent):
        gc.disable()
        try:
            with await connected(address) as client:
                await until(lambda: bool(state.connections))
                [connection] = map(weakref.ref, state.connections)
                client.send(asked)
                await until(lambda: len(sent) == answers)
            await until(lambda: connection() is None, seconds=5)
        finally:
            gc.enable()
