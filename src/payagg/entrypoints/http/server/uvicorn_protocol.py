"""One client's connection: deadlines and caps for what it sends and for how it reads, and a stop that drops no request
on its way."""

import asyncio
import re
import socket
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import httptools
import structlog
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from payagg.application.telemetry import count
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.server.answer_transport import FEW_BYTES, AnswerTransport
from payagg.entrypoints.http.server.client_address import address_of
from payagg.entrypoints.http.server.connections import CROWDED_KEEP_ALIVE, OpenConnections
from payagg.entrypoints.http.server.cors import Headers
from payagg.entrypoints.http.server.wire import FIELDS, REQUEST_ID, error_envelope, fields_of, request_id_of

HEAD_MAX = 64 * 1024  # bytes of a request line with headers
_HOST = re.compile(rb"[0-9A-Za-z!$&'()*+,;=._~:\[\]@%-]*")  # all that RFC 3986, 3.2 lets stand there
FRAMING = b"content-length", b"transfer-encoding"
LINE_BYTES = 4  # of a field's line beyond its name and value: a colon, a space and the line's end
FIELDS_MAX = 100  # each costs the framework a microsecond or more, however short it is
COOKIE_MAX = 8 * 1024  # bytes of what the fields `Cookie` hold; our own two need 3.8 KB each at most
BAD_REQUEST, HEAD_TOO_LARGE = HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
LONG_HEAD = HEAD_TOO_LARGE, f"The request line and headers must fit {HEAD_MAX} bytes.", None
HEADER_SECONDS = 10.0  # for a whole request line with headers, however slowly they drip
PIPELINED_MAX = 8  # requests that wait for the answer to the one before them
TCP_INFO = getattr(socket, "TCP_INFO", None)  # Linux: the connection's state is its first byte,
CLOSE_WAIT = b"\x08"  # which is this one once the other end has closed
IDLE_SECONDS = 1.0  # an idle connection stays open for as long when the server stops
LINGER_SECONDS = 5.0  # for a client that still sends when its answer is complete, so that it gets to read it
_log = structlog.get_logger("payagg.http")


def has_left(connection: socket.socket) -> bool:
    """Whether the client hung up before its connection was taken. After an overload thousands of these wait, in front
    of whoever is still there, and each request would be answered to nobody."""
    return TCP_INFO is not None and connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 1) == CLOSE_WAIT


class Cycle(RequestResponseCycle):
    """Ways past ASGI's messages where a body is whole: uvicorn's own looks at each header in five ways, 5 % of a read,
    and waits for a body that has come, 3 % of an initiation."""

    def write(self, status: int, headers: Headers, body: bytes) -> bool:
        """Writes a whole answer, head and body in one packet; False where that is uvicorn's business: the connection
        is to be closed, its client is slow or gone, or a header holds a line's end, which it refuses."""
        is_ready = self.keep_alive and not (self.response_started or self.flow.write_paused or self.disconnected)
        if not is_ready or headers[-1][0] == b"connection":
            return False
        lines = [*map(b": ".join, self.default_headers), *map(b": ".join, headers), b"\r\n"]
        head = b"\r\n".join(lines)
        if not head.count(b"\n") == head.count(b"\r") == len(lines) or b"\0" in head:
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.write(STATUS_LINE[status] + head + body)
        self.message_event.set()
        self.on_response()
        return True

    def take_body(self) -> bytes:
        """What has come of the body; who asks again waits for more."""
        content, self.body = bytes(self.body), bytearray()
        self.message_event.clear()
        return content


# Uvicorn asks nobody for another class. Given to a cycle that is made, it costs 1.7 % of a read.
httptools_impl.RequestResponseCycle = Cycle  # type: ignore[misc]


class ServerProtocol(HttpToolsProtocol):
    """Uvicorn's own sets neither deadline nor cap before the headers are whole, waits for ever for a client to read,
    and closes idle connections when it stops, though the next request may have been sent already."""

    server_state: OpenConnections
    transport: AnswerTransport  # type: ignore[assignment]
    header_seconds = HEADER_SECONDS
    _timer: asyncio.TimerHandle | None = None
    _idle_since: float | None = None  # the last answer was complete then, and no request has begun since
    _in_message = False
    _head: int | None = None  # bytes that came of a head that is not whole yet
    _piece = 0  # bytes that came last
    _refused: tuple[HTTPStatus, str, str | None] | None = None  # what came is: with a status, words and a field
    _discards_input = False  # nothing that still comes is read
    _lingers_since: float | None = None  # our side was closed then
    _address: str | None = None  # that this connection counts for; None: it was not admitted

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        if address and has_left(transport.get_extra_info("socket")):
            transport.abort()
            return
        if not self.server_state.admit(address):
            self.server_state.refuse(address, self.loop.time())
            transport.abort()
            return
        self._address = address
        super().connection_made(transport)
        self.transport = AnswerTransport(transport, self._hang_up)
        self._close_in(IDLE_SECONDS if self.server_state.is_closing else self.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is None:
            return
        self.server_state.leave(self._address)
        self._stay()
        super().connection_lost(exc)
        self.transport.forget()

    def data_received(self, data: bytes) -> None:
        if self._discards_input:
            return
        self._piece = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("The request is not HTTP.")
            return
        except httptools.HttpParserUpgrade as upgrade:
            # Answered as the plain request that it also is, as Java's client needs: it asks for HTTP/2 each time.
            self._expect_body()
            if rest := data[upgrade.args[0] :]:
                self.data_received(rest)
            return
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_MAX:
                self._refused = LONG_HEAD
                self.send_400_response("")
                return
        # Part of a request's head, or of a body that its answer did not wait for; a whole request sets no timer.
        if self._timer is None and self._in_message and self._is_idle():
            self._close_in(self.header_seconds)

    def on_message_begin(self) -> None:
        self._idle_since = None  # not before: blank lines are no request
        if len(self.pipeline) >= PIPELINED_MAX:
            self._refuse(f"At most {PIPELINED_MAX} requests may wait for an answer.")
        self._in_message, self._head = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            # Uvicorn would add it to the request's headers, where it could pass for a credential or an address.
            self._refuse("Fields behind a body are not read.")
        headers = self.headers
        if len(headers) >= FIELDS_MAX:
            self._refuse(f"At most {FIELDS_MAX} header fields are read.", status=HEAD_TOO_LARGE)
        # Space behind a value is none of it (RFC 9110, 5.5); a client that passes it on would refuse to send it.
        headers.append((name.lower(), value.rstrip(b" \t")))

    def on_message_complete(self) -> None:
        self._in_message = False
        super().on_message_complete()

    def _expect_body(self) -> None:
        """The parser ends a message that asks for another protocol with its head. Another parser reads its body, which
        would be the next request else, and is the last thing that is read of this connection."""
        framing = [b"%b: %b\r\n" % field for field in self.headers if field[0] in FRAMING]
        if framing:
            self._in_message = self.cycle.more_body = True
            self.cycle.keep_alive = False
            body = SimpleNamespace(on_body=self.on_body, on_message_complete=self._end_body)
            self.parser = httptools.HttpRequestParser(body)
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n")

    def _end_body(self) -> None:
        self.on_message_complete()
        self._discards_input = True

    def on_headers_complete(self) -> None:
        self._stay()
        self._look_at_fields()
        self._head = None
        super().on_headers_complete()
        if self.server_state.is_closing:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """Uvicorn's own sets a timer for each answer, 2.7 % of a read: here `look` ends what is idle."""
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._discards_input:
            self.transport.close()
        else:
            self._idle_since = self.loop.time()

    def send_400_response(self, msg: str) -> None:
        """Answers what cannot be read as a request, in the envelope, and hangs up. Where answers to requests before it
        are still to come, it only hangs up after those: this one would be taken for the first of them."""
        self._discards_input = True
        request_id = request_id_of(fields_of(self.headers or ()), self.server_state.new_id)
        status, why, field = self._refused or (BAD_REQUEST, msg, None)
        _log.warning("request refused", client=self._client, request_id=request_id, reason=why)
        if not self._is_idle():
            if self.pipeline or self.cycle.response_started or not self.cycle.more_body:
                return
            self.cycle.disconnected = True  # of this one the rest of the body never comes
            self.cycle.message_event.set()
        body = error_envelope(status, ErrorCode.VALIDATION_ERROR.name, why, field).content
        head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}X-Request-Id: {request_id}\r\nConnection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def look(self, now: float) -> None:
        """Gives up a client that does not read its answers, and ends what is idle sooner when connections run short."""
        state, idle_since = self.server_state, self._idle_since
        kept_seconds = CROWDED_KEEP_ALIVE if state.is_crowded else self.timeout_keep_alive
        if self.transport.is_too_slow(now, state.unread_seconds, state.unread_rate):
            count("slow_readers")
            request_id = self.cycle.scope.get(REQUEST_ID) if self.cycle else None
            _log.warning("slow reader", client=self._client, request_id=request_id, unread=self.transport.unread)
            self.transport.reset()
        elif self._lingers_since is not None:
            unread, is_over = self.transport.unread, now - self._lingers_since >= LINGER_SECONDS
            if (not unread and not self._in_message) or (unread <= FEW_BYTES and is_over):
                self.transport.finish()
        elif idle_since is not None and now - idle_since >= kept_seconds:
            self.transport.close()

    def _hang_up(self) -> None:
        """Closes the connection, or our side of it while the client has yet to read much or still sends: a reset would
        take its answer away, and what a closed connection holds nobody sees."""
        self._discards_input = True
        if self.transport.is_closing():
            return
        if self._in_message or self.transport.unread > FEW_BYTES:
            self._lingers_since = self.loop.time()
            self.transport.half_close()
            self.flow.resume_reading()
        else:
            self.transport.finish()

    @property
    def _client(self) -> str:
        address = address_of(self._address or "", self.headers or (), self.server_state.proxies)
        return str(address) if address else "unknown"

    def _look_at_fields(self) -> None:
        """Their size, which counts where they came in one piece, too; and Host as RFC 9112, 3.2 has it: what stands
        behind us may read another one of two, or need one."""
        scope: Any = self.scope
        fields = scope[FIELDS] = fields_of(self.headers)
        if (self._head or 0) + self._piece > HEAD_MAX:  # less came than that, in most requests
            size = len(self.url) + sum(len(name) + len(value) + LINE_BYTES for name, value in self.headers)
            if size > HEAD_MAX:
                self._refuse(LONG_HEAD[1], status=HEAD_TOO_LARGE)
        host = fields.get(b"host", b"")
        hosts = 1 if host else sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._refuse("A request has one field `Host`.", "Host")
        if not _HOST.fullmatch(host):
            self._refuse("Is not the name of a host.", "Host")
        if fields.get(b"expect", b"").lower() == b"100-continue":
            self.expect_100_continue = True
        if b"cookie" in fields and sum(len(value) for name, value in self.headers if name == b"cookie") > COOKIE_MAX:
            self._refuse(f"Cookies must fit {COOKIE_MAX} bytes.", "Cookie", status=HEAD_TOO_LARGE)

    def _refuse(self, why: str, field: str | None = None, *, status: HTTPStatus = BAD_REQUEST) -> None:
        self._refused = status, why, field
        raise ValueError(why)  # ends the parsing, which answers with it

    def shutdown(self) -> None:
        if self._is_idle():
            self._close_in(IDLE_SECONDS)
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
