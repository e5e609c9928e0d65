"""What one connection does with the loop's clock, without a socket."""

import asyncio
from unittest.mock import create_autospec

from uvicorn.config import Config

from payagg.entrypoints.http.server.connections import OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import ServerProtocol


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
