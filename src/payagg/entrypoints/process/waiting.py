"""A process whose schema is older than its release waits for `payagg migrate`, and says that it is not ready: a new
release's servers may be started before the migration or after it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import structlog

from payagg.application.ports.outside import Conflict, Unavailable
from payagg.entrypoints.bootstrap import entropy_of, schema_fits
from payagg.entrypoints.http.app import NOT_CURRENT
from payagg.entrypoints.http.server.errors import refusal_envelope, try_later
from payagg.entrypoints.http.server.wire import envelope
from payagg.entrypoints.process.http_server import http_server
from payagg.entrypoints.settings import Settings

CHECK_SECONDS = 1.0
_log = structlog.get_logger("payagg.waiting")


async def schema_awaited(
    settings: Settings, database_url: str, listener: socket.socket | None, stop: asyncio.Event
) -> bool:
    """Returns True once the database's schema is one that this release works on, False when `stop` is set before. Until
    then `/healthz` is answered on `listener`, and everything else 503. Raises Unavailable when the database is down at
    the first look."""
    if await schema_fits(settings, database_url):
        return True
    _log.warning("the schema is older than this release: waiting for `payagg migrate`")
    async with _answering(settings, listener):
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), CHECK_SECONDS)
            try:
                if await schema_fits(settings, database_url):
                    _log.info("the schema is current")
                    return True
            except (Unavailable, Conflict) as error:
                _log.warning("the schema cannot be looked at", reason=str(error))
    return False


@contextlib.asynccontextmanager
async def _answering(settings: Settings, listener: socket.socket | None) -> AsyncIterator[None]:
    if listener is None:
        yield
        return
    entropy = entropy_of(settings)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        is_alive = scope["path"] == "/healthz"
        answered: Any = (
            envelope({"status": "ok"}) if is_alive else refusal_envelope(try_later(entropy.chance(), NOT_CURRENT))
        )
        await answered.to_asgi_response()(scope, receive, send)

    server = http_server(answer, entropy.hex)
    # Uvicorn closes the socket that it is given; whoever connects meanwhile waits in the queue of the same one.
    serving = asyncio.create_task(server.serve(sockets=[listener.dup()]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
