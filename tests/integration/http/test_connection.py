"""One client's connection, beneath the application: what leaves, and when."""

import asyncio
import socket
from typing import Any

import pytest

from payagg.adapters.system import SystemEntropy
from payagg.entrypoints.process.http_server import http_server, listen

pytestmark = pytest.mark.anyio
NEW_ID = SystemEntropy("PAY").hex


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}  # as the product


async def test_an_answer_has_left_before_its_log_line_is_written() -> None:
    arrived: list[bytes] = []
    answered = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
        # Where the access log is written. The client is in this process, so nothing has to travel.
        answered.set()
        arrived.append(client.recv(65536, socket.MSG_DONTWAIT))

    server, listener = http_server(app, NEW_ID), listen("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    with socket.create_connection(listener.getsockname()[:2]) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: shop.example\r\n\r\n")
        async with asyncio.timeout(30):
            await answered.wait()
    server.should_exit = True
    await serving
    assert [answer.endswith(b"\r\n\r\nok") for answer in arrived] == [True]
