"""One bounded POST to a merchant. Nothing a receiver does raises here, and nothing it says is kept but the status."""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

import httpcore

from payagg.adapters.system import SystemClock, crash_point
from payagg.adapters.webhooks.network import (
    AddressRefused,
    AnswerTooLarge,
    CheckedNetwork,
    NameUnresolved,
    Resolve,
    Resolver,
)
from payagg.application.ports import Sent

TRY_SECONDS = 15.0  # the whole try: lookup, connection, TLS, request and answer
BODY_MAX = 16 * 1024  # bytes of an answer's body that are read, for the sake of the connection alone
KEEP_SECONDS = 20.0  # an idle connection is used again for so long
KEPT_MAX = 400  # as many as tries at once: one host may serve many merchants. They count against the open files.
USER_AGENT = "payagg-webhooks/1"
_HEADERS = (
    (b"content-type", b"application/json"),
    (b"user-agent", USER_AGENT.encode()),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"identity"),
)
Place = tuple[bytes, bytes, int]  # scheme, host, port


class HttpSender:
    """Keeps connections to hosts that answered. No redirects, cookies, proxies or decompression exist here."""

    def __init__(
        self,
        *,
        allow_loopback: bool,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
        deadline: float = TRY_SECONDS,
    ) -> None:
        self._resolver = Resolver() if resolve is None else None
        self._network = CheckedNetwork(resolve or self._resolver, allow_loopback=allow_loopback)  # type: ignore[arg-type]
        self._tls = tls or ssl.create_default_context()
        self._tls.set_alpn_protocols(["http/1.1"])
        self._deadline = deadline
        self._idle: dict[Place, deque[httpcore.AsyncHTTP11Connection]] = {}
        self._kept = 0

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        started = time.monotonic()
        answered: list[tuple[int, timedelta | None]] = []
        error: str | None = None
        try:
            async with asyncio.timeout(self._deadline):
                await self._post(url, headers, body, answered)
        except (TimeoutError, httpcore.TimeoutException):
            error = "no answer in time"
        except Exception as failure:  # noqa: BLE001 - whatever a receiver or its URL provokes is one failed try
            error = _words(failure)
        milliseconds = int((time.monotonic() - started) * 1000)
        crash_point("sent")
        if not answered:
            return Sent(None, error or "no answer", milliseconds)
        # The status is the answer, whatever became of the body behind it.
        status, retry_after = answered[0]
        return Sent(status, None if 200 <= status < 300 else f"answered {status}", milliseconds, retry_after)

    async def close(self) -> None:
        for kept in self._idle.values():
            for connection in kept:
                await connection.aclose()
        self._idle.clear()
        if self._resolver is not None:
            self._resolver.close()

    async def _post(
        self, url: str, headers: Mapping[str, str], body: bytes, answered: list[tuple[int, timedelta | None]]
    ) -> None:
        target = _parsed(url)
        place = _place(target)
        request = httpcore.Request(
            "POST",
            target,
            headers=[
                (b"host", _host(target)),
                *_HEADERS,
                (b"content-length", str(len(body)).encode()),
                *((name.encode(), value.encode()) for name, value in headers.items()),
            ],
            content=body,
        )
        connection = self._kept_connection(place)
        if connection is not None:
            try:
                await self._exchange(connection, place, request, answered)
                return
            except (httpcore.NetworkError, httpcore.RemoteProtocolError):
                # The receiver may close a kept connection at any moment; before any answer that says nothing of it.
                if answered:
                    raise
        connection = await self._connected(target)
        await self._exchange(connection, place, request, answered)

    async def _connected(self, target: httpcore.URL) -> httpcore.AsyncHTTP11Connection:
        # httpcore's own AsyncHTTPConnection adds a lock and a choice of protocols to each request, for sharing one
        # connection, which is never done here.
        scheme, host, port = _place(target)
        stream = await self._network.connect(host.decode("ascii"), port)
        if scheme == b"https":
            await stream.secure(self._tls, host.decode("ascii"))
        return httpcore.AsyncHTTP11Connection(target.origin, stream, keepalive_expiry=KEEP_SECONDS)

    async def _exchange(
        self,
        connection: httpcore.AsyncHTTP11Connection,
        place: Place,
        request: httpcore.Request,
        answered: list[tuple[int, timedelta | None]],
    ) -> None:
        is_whole = False
        try:
            response = await connection.handle_async_request(request)
            answered.append((response.status, _retry_after(response.headers)))
            is_whole = await _drain(response)
        finally:
            if is_whole and connection.is_available() and not _has_more(connection):
                self._keep(place, connection)
            else:
                await connection.aclose()

    def _kept_connection(self, place: Place) -> httpcore.AsyncHTTP11Connection | None:
        kept = self._idle.get(place)
        while kept:
            connection = kept.pop()
            self._kept -= 1
            if not kept:
                del self._idle[place]
            if not connection.has_expired():
                return connection
            self._close_later(connection)
        return None

    def _keep(self, place: Place, connection: httpcore.AsyncHTTP11Connection) -> None:
        if self._kept >= KEPT_MAX:
            oldest = next(iter(self._idle))
            self._close_later(self._idle[oldest].popleft())
            self._kept -= 1
            if not self._idle[oldest]:
                del self._idle[oldest]
        self._idle.setdefault(place, deque()).append(connection)
        self._kept += 1

    def _close_later(self, connection: httpcore.AsyncHTTP11Connection) -> None:
        closing = asyncio.ensure_future(connection.aclose())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())


@lru_cache(maxsize=1024)
def _parsed(url: str) -> httpcore.URL:
    target = httpcore.URL(url)
    if target.scheme not in (b"http", b"https"):
        raise httpcore.UnsupportedProtocol
    return target


def _place(target: httpcore.URL) -> Place:
    origin = target.origin
    return origin.scheme, origin.host, origin.port


async def _drain(response: httpcore.Response) -> bool:
    """Reads the body as far as BODY_MAX; whether that was all of it, so that the connection can be used again."""
    read = 0
    async for chunk in response.aiter_stream():
        read += len(chunk)
        if read > BODY_MAX:
            return False
    await response.aclose()
    return True


def _has_more(connection: httpcore.AsyncHTTP11Connection) -> bool:
    """Whether more came along with the answer. httpcore keeps it out of sight, to be read as the next answer."""
    return bool(connection._h11_state.trailing_data[0])


def _host(target: httpcore.URL) -> bytes:
    host = b"[" + target.host + b"]" if b":" in target.host else target.host
    return host if target.port is None else host + b":" + str(target.port).encode()


def _retry_after(headers: list[tuple[bytes, bytes]]) -> timedelta | None:
    """Seconds or an HTTP date; None for anything else. The schedule decides how far it is heeded."""
    value = next((value for name, value in headers if name.lower() == b"retry-after"), None)
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text[:9]))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(at.replace(tzinfo=at.tzinfo or UTC) - SystemClock().now(), timedelta(0))


def _words(failure: Exception) -> str:
    """What the delivery log says. Fixed words: an exception's own may repeat what a receiver sent."""
    if isinstance(failure, AddressRefused):
        return "the host has an address that is not public"
    if isinstance(failure, NameUnresolved):
        return "the host name could not be resolved"
    if isinstance(failure, AnswerTooLarge):
        return "the answer was too large"
    if isinstance(failure, ssl.SSLCertVerificationError):
        return "the TLS certificate was refused"
    if isinstance(failure, ssl.SSLError):
        return "the TLS handshake failed"
    if isinstance(failure, httpcore.ConnectError):
        return "the connection was refused"
    if isinstance(failure, httpcore.UnsupportedProtocol):
        return "the address is not http or https"
    if isinstance(failure, httpcore.ProtocolError):
        return "the answer was not understood"
    return "the connection broke"
