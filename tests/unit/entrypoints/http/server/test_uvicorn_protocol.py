"""What one connection does with the loop's clock, without a socket."""

import asyncio
import logging
import socket
from typing import Any
from unittest.mock import create_autospec

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl

from payagg.entrypoints.http.server.connections import OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import Cycle, ServerProtocol


async def test_an_idle_connection_stays_open_for_a_second_when_the_server_stops() -> None:
    """A supervisor gives a server a few seconds, which are for requests on their way."""
    config = Config(app=lambda: None, http=ServerProtocol)
    config.load()
    connection = ServerProtocol(config, OpenConnections(lambda _: "id"), {})
    connection.connection_made(create_autospec(asyncio.Transport, instance=True))
    before = asyncio.get_running_loop().time()
    connection.shutdown()
    timer = connection._timer
    assert timer is not None
    assert before + 1.0 <= timer.when() <= asyncio.get_running_loop().time() + 1.0
    timer.cancel()


async def answer_at_once(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("blank", [b"", b"\r\n", b"\n"])
async def test_blank_lines_keep_no_connection_open(blank: bytes) -> None:
    """They may stand before a request (RFC 9112, 2.2), and are none."""
    config = Config(app=answer_at_once, http=ServerProtocol, interface="asgi3")
    config.load()
    connection = ServerProtocol(config, OpenConnections(lambda _: "id"), {})
    transport, now = create_autospec(asyncio.Transport, instance=True), asyncio.get_running_loop().time
    with socket.socket() as unconnected:
        transport.get_extra_info.side_effect = {"socket": unconnected}.get
        transport.is_closing.return_value = False
        transport.get_write_buffer_size.return_value = 0
        connection.connection_made(transport)
        for _ in range(2):
            connection.data_received(blank + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.look(now() + config.timeout_keep_alive)  # its answer may take longer
            await asyncio.gather(*connection.tasks)
        ends = now() + config.timeout_keep_alive
        connection.data_received(b"\r\n")
        connection.look(ends - 1)
        transport.close.assert_not_called()
        connection.look(ends)
        transport.close.assert_called_once()


Parts = tuple[bytes, ...]
[RequestResponseCycle] = Cycle.__bases__  # which nothing in Uvicorn's module names any more


async def written_by(
    kind: Any,
    *more: tuple[bytes, bytes],
    keep_alive: bool = True,
    method: str = "GET",
    parts: Parts = (b"ok",),
) -> list[bytes]:
    """What is written of an answer to which these headers are added, whose body comes in parts."""
    transport = create_autospec(asyncio.Transport, instance=True)
    cycle = kind(
        scope={"type": "http", "method": method},
        transport=transport,
        flow=FlowControl(transport),
        logger=logging.getLogger(),
        access_logger=logging.getLogger(),
        access_log=False,
        default_headers=[(b"date", b"today")],
        message_event=asyncio.Event(),
        expect_100_continue=True,
        keep_alive=keep_alive,
        on_response=lambda: None,
    )
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"2"), *more]
    if not (isinstance(cycle, Cycle) and cycle.write(201, headers, b"".join(parts))):
        await cycle.send({"type": "http.response.start", "status": 201, "headers": headers})
        for place, part in enumerate(parts, 1):
            await cycle.send({"type": "http.response.body", "body": part, "more_body": place < len(parts)})
    assert cycle.response_complete
    return [call.args[0] for call in transport.write.call_args_list]


@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("more", [(), ((b"x-request-id", b"a"),), ((b"x-a", b"b"), (b"connection", b"close"))])
@pytest.mark.parametrize(("method", "parts"), [("GET", (b"ok",)), ("GET", (b"o", b"k")), ("HEAD", (b"",))])
async def test_an_answer_is_written_as_uvicorn_writes_it(
    method: str, parts: Parts, more: tuple[tuple[bytes, bytes], ...], keep_alive: bool
) -> None:
    own = await written_by(Cycle, *more, keep_alive=keep_alive, method=method, parts=parts)
    theirs = await written_by(RequestResponseCycle, *more, keep_alive=keep_alive, method=method, parts=parts)
    assert b"".join(own) == b"".join(theirs)


async def test_head_and_body_are_one_packet_and_headers_hold_no_end_of_a_line() -> None:
    assert len(await written_by(Cycle)) == 1
    for forged in ((b"x-a", b"b\r\nx-c: d"), (b"x-a", b"b\nx-c: d"), (b"x\r", b"b"), (b"x-a", b"\0")):
        with pytest.raises(RuntimeError, match="Invalid HTTP header"):
            await written_by(Cycle, forged)
