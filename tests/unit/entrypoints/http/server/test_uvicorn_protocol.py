"""What one connection does with the loop's clock, without a socket."""

import asyncio
import logging
from unittest.mock import create_autospec

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from payagg.entrypoints.http.server.connections import OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import Cycle, ServerProtocol

pytestmark = pytest.mark.anyio


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


async def head_by(kind: type[RequestResponseCycle], *more: tuple[bytes, bytes], keep_alive: bool = True) -> list[bytes]:
    """What is written of an answer to which these headers are added."""
    transport = create_autospec(asyncio.Transport, instance=True)
    cycle = kind(
        scope={"type": "http", "method": "GET"},  # type: ignore[typeddict-item]
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
    await cycle.send({"type": "http.response.start", "status": 201, "headers": headers})
    await cycle.send({"type": "http.response.body", "body": b"ok", "more_body": False})
    return [call.args[0] for call in transport.write.call_args_list]


@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("more", [(), ((b"x-request-id", b"a"),), ((b"x-a", b"b"), (b"connection", b"close"))])
async def test_a_head_is_written_as_uvicorn_writes_it(more: tuple[tuple[bytes, bytes], ...], keep_alive: bool) -> None:
    own = await head_by(Cycle, *more, keep_alive=keep_alive)
    assert own == await head_by(RequestResponseCycle, *more, keep_alive=keep_alive)


@pytest.mark.parametrize("forged", [(b"x-a", b"b\r\nx-c: d"), (b"x-a", b"b\nx-c: d"), (b"x\r", b"b"), (b"x-a", b"\0")])
async def test_no_header_holds_the_end_of_a_line(forged: tuple[bytes, bytes]) -> None:
    with pytest.raises(RuntimeError, match="Invalid HTTP header"):
        await head_by(Cycle, forged)
