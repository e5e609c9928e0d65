"""HTTP/1.1 with one receiver: one exchange at a time, bounded in bytes; the caller bounds the time."""

import asyncio
import select
import socket
from typing import NamedTuple

import httptools

ANSWER_MAX = 96 * 1024  # bytes of one answer, head included
BODY_MAX = 16 * 1024  # bytes of its body that are read, only to reuse the connection


class NoAnswer(Exception):
    """Why there is none, in the delivery log's words: another exception's message may repeat the receiver's bytes."""


class HttpAnswer(NamedTuple):
    """What a final answer's head says, the header as it was sent."""

    status: int
    retry_after: bytes | None


class HttpConnection(asyncio.Protocol):
    """What the loop and the parser call for a socket that was dialled; TLS, if any, is the loop's."""

    _transport: asyncio.Transport

    def __init__(self, dialled: socket.socket) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._waiting = select.poll()  # for bytes that the loop has not taken in yet
        self._waiting.register(dialled, select.POLLIN)
        self._over: asyncio.Future[None] | None = None  # the exchange under way
        self._answered: list[HttpAnswer] = []
        self._is_reusable = True

    @property
    def is_usable(self) -> bool:
        """Whether another exchange may follow: the answers so far were whole, with nothing after them."""
        return self._is_reusable and not self._transport.is_closing() and not self._waiting.poll(0)

    async def exchange(self, request: bytes, answered: list[HttpAnswer]) -> bool:
        """Adds the answer to `answered` as soon as its head is there, and ends with its body or at BODY_MAX; whether
        the connection is worth keeping.

        Raises OSError, httptools.HttpParserError or NoAnswer.
        """
        if self._transport.is_closing():
            raise ConnectionResetError
        self._answered, self._is_reusable = answered, False
        self._left, self._body_left = ANSWER_MAX, BODY_MAX
        self._over = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            await self._over
        finally:
            self._over = None  # its error's traceback holds this connection
        return self._is_reusable

    def close(self) -> None:
        # Aborted, not closed: TLS's close_notify would wait for a receiver that may never answer.
        self._transport.abort()

    # What the loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._is_asking:
            self._is_reusable = False
            return
        try:
            self._parser.feed_data(data[: self._left])
        except httptools.HttpParserError as error:
            self._is_reusable = False
            self._end(error)
        except httptools.HttpParserUpgrade:  # no parser error to httptools; what follows is of another protocol
            self._is_reusable = False
            self._end(httptools.HttpParserError("a change of protocol that nobody asked for"))
        self._left -= len(data)
        if self._left < 0:
            self._is_reusable = False
            self._end(NoAnswer("the answer was too large"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionResetError())
        del self._parser  # which holds this connection: else only the collector would free both, with all of its TLS

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._retry_after: bytes | None = None
        if not self._is_asking:
            self._is_reusable = False  # it came along with the answer, and nobody asked for it

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._retry_after is None and name.lower() == b"retry-after":
            self._retry_after = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and self._is_asking:
            self._answered.append(HttpAnswer(status, self._retry_after))

    def on_body(self, body: bytes) -> None:
        self._body_left -= len(body)
        if self._body_left < 0:
            self._end()

    def on_message_complete(self) -> None:
        # One without a final answer was informational: the answer comes behind it.
        if self._answered and self._is_asking:
            self._is_reusable = self._parser.should_keep_alive()
            self._end()

    @property
    def _is_asking(self) -> bool:
        return self._over is not None and not self._over.done()

    def _end(self, error: Exception | None = None) -> None:
        if self._over is None or self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)
