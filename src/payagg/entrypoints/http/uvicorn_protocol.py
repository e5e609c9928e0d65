"""One client's connection: a deadline and a cap for its headers, and a stop that drops no request on its way."""

import asyncio
import ipaddress
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from payagg.application.counters import count
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.wire import error_envelope
from payagg.entrypoints.setting_kinds import Networks

HEAD_MAX = 64 * 1024  # bytes of a request line with headers
HEADER_SECONDS = 10.0  # for a whole request line with headers, however slowly they drip
WHOLE = "payagg.whole"  # in a scope's state once the whole request has come, so that nothing need wait for its body
LINGER_SECONDS = 1.0  # an idle connection stays open for as long when the server stops


CROWDED = 0.8  # of the connections that there may be: from there on an idle one is kept for a moment only
CROWDED_KEEP_ALIVE = 5


class OpenConnections(ServerState):
    """All connections of a server, which is closing or not. One over `most` in all, or over `per_address` of a client
    that is no `proxies`' member, is closed before it is read: descriptors stay for the database and for deliveries."""

    is_closing = False
    most = per_address = 1_000_000
    proxies: Networks = ()

    def __init__(self) -> None:
        super().__init__()
        self._by_address: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        if len(self.connections) >= self.most:
            return False
        if self._by_address[address] >= self.per_address and not self._is_proxy(address):
            return False
        self._by_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    @property
    def is_crowded(self) -> bool:
        return len(self.connections) >= self.most * CROWDED

    def _is_proxy(self, address: str) -> bool:
        try:
            return any(ipaddress.ip_address(address) in network for network in self.proxies)
        except ValueError:
            return False


class Corked:
    """A transport that keeps a response's head until its body comes, at most to the end of the loop's turn: together
    they are one packet and one call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        if len(self._parts) > 1:
            self._flush()
        else:
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))


class ServerProtocol(HttpToolsProtocol):
    """Uvicorn's own sets neither deadline nor cap before the headers are whole, and closes idle connections when it
    stops, though the next request may have been sent already."""

    server_state: OpenConnections
    header_seconds = HEADER_SECONDS
    _timer: asyncio.TimerHandle | None = None
    _in_message = False
    _head: int | None = None  # bytes that came of a head that is not whole yet
    _fields: int = 0  # bytes of its fields, however they came
    _why = ""  # the head is refused
    _address: str | None = None  # that this connection counts for; None: it was not admitted

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        if not self.server_state.admit(address):
            count("connections_refused")
            transport.abort()
            return
        self._address = address
        super().connection_made(transport)
        if self.server_state.is_crowded:
            self.timeout_keep_alive = CROWDED_KEEP_ALIVE
        self.transport = Corked(transport, self.loop)  # type: ignore[assignment]
        self._close_in(LINGER_SECONDS if self.server_state.is_closing else self.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is None:
            return
        self.server_state.leave(self._address)
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
        self._in_message, self._head, self._fields = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            # Uvicorn would add it to the request's headers, where it could pass for a credential or an address.
            self._refuse("Fields behind a body are not read.")
        self._count(len(name) + len(value))
        super().on_header(name, value)

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
        body = error_envelope(400, ErrorCode.VALIDATION_ERROR.name, self._why or msg).content
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _count(self, size: int) -> None:
        self._fields += size
        if self._fields > HEAD_MAX:
            self._refuse(f"The request line and headers must fit {HEAD_MAX} bytes.")

    def _refuse(self, why: str) -> None:
        self._why = why
        raise ValueError(why)  # ends the parsing, which answers 400

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
