"""One client's connection: a deadline and a cap for its headers, and a stop that drops no request on its way."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.wire import error_envelope

HEAD_MAX = 64 * 1024  # bytes of a request line with headers
HEADER_SECONDS = 10.0  # for a whole request line with headers, however slowly they drip
WHOLE = "payagg.whole"  # in a scope's state once the whole request has come, so that nothing need wait for its body
LINGER_SECONDS = 1.0  # an idle connection stays open for as long when the server stops


class OpenConnections(ServerState):
    """All connections of a server, which is closing or not."""

    is_closing = False


class Corked:
    """A transport that keeps a response's head until its body comes, at most to the end of the loop's turn: together
    they are one packet and one call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._held.append(data)
        if len(self._held) > 1:
            self._flush()
        else:
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            use_cases, self._held = self._held, []
            self._transport.write(b"".join(use_cases))


class ServerProtocol(HttpToolsProtocol):
    """Uvicorn's own sets neither deadline nor cap before the headers are whole, and closes idle connections when it
    stops, though the next request may have been sent already."""

    server_state: OpenConnections
    header_seconds = HEADER_SECONDS
    _timer: asyncio.TimerHandle | None = None
    _in_message = False
    _head: int | None = None  # bytes that came of a head that is not whole yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = Corked(transport, self.loop)  # type: ignore[assignment]
        self._close_in(LINGER_SECONDS if self.server_state.is_closing else self.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stay()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_MAX:
                self.send_400_response(f"The request line and headers must fit {HEAD_MAX} bytes.")
                return
        # Part of a request's head, or of a body that its answer did not wait for; a whole request sets no timer.
        if self._timer is None and self._in_message and self._is_idle():
            self._close_in(self.header_seconds)

    def on_message_begin(self) -> None:
        self._in_message, self._head = True, 0
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._in_message = False
        self.scope["state"][WHOLE] = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._stay()
        self._head = None
        super().on_headers_complete()
        if self.server_state.is_closing:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Answers what cannot be read as a request, in the envelope, and hangs up."""
        body = error_envelope(400, ErrorCode.VALIDATION_ERROR.name, msg).content
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def shutdown(self) -> None:
        if self._is_idle():
            self._close_in(LINGER_SECONDS)
        else:
            self.cycle.keep_alive = False

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_in(self, seconds: float) -> None:
        self._stay()
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _stay(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
