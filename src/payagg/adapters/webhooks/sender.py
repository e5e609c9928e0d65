"""One bounded POST to a merchant. Nothing a receiver does raises here, and nothing it says is kept but the status."""

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from payagg.adapters.system import SystemClock, crash_point
from payagg.adapters.webhooks.network import (
    ANSWER_MAX,
    AddressRefused,
    AnswerTooLarge,
    CheckedNetwork,
    NameUnresolved,
    NotConnected,
    Resolve,
    Resolver,
    Stream,
)
from payagg.application.ports import Sent

TRY_SECONDS = 15.0  # the whole try: lookup, connection, TLS, request and answer
BODY_MAX = 16 * 1024  # bytes of an answer's body that are read, for the sake of the connection alone
KEEP_SECONDS = 20.0  # an idle connection is used again for so long
KEPT_MAX = 400  # as many as tries at once: one host may serve many merchants. They count against the open files.
USER_AGENT = "payagg-webhooks/1"
PORTS = {"http": 80, "https": 443}
_HEADERS = (
    ("content-type", "application/json"),
    ("user-agent", USER_AGENT),
    ("accept", "*/*"),
    ("accept-encoding", "identity"),
)


class UnsupportedScheme(Exception):
    """Neither http nor https."""


class Place(NamedTuple):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int


class Answer(NamedTuple):
    status: int
    retry_after: timedelta | None


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
        self._idle: dict[Place, deque[Connection]] = {}
        self._kept = 0

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        started = time.monotonic()
        answered: list[Answer] = []
        error: str | None = None
        try:
            async with asyncio.timeout(self._deadline):
                await self._post(url, headers, body, answered)
        except TimeoutError:
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
                connection.stream.close()
        self._idle.clear()
        if self._resolver is not None:
            self._resolver.close()

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes, answered: list[Answer]) -> None:
        place, target, host = _parsed(url)
        given = [("host", host), *_HEADERS, ("content-length", str(len(body))), *headers.items()]
        request = h11.Request(method="POST", target=target, headers=given)
        connection = self._kept_connection(place)
        if connection is not None:
            try:
                await self._exchange(connection, request, body, answered)
                return
            except (OSError, h11.RemoteProtocolError):
                # The receiver may close a kept connection at any moment; before any answer that says nothing of it.
                if answered:
                    raise
        await self._exchange(await self._connected(place), request, body, answered)

    async def _connected(self, place: Place) -> "Connection":
        stream = await self._network.connect(place.host, place.port)
        if place.scheme == "https":
            await stream.secure(self._tls, place.host)
        return Connection(place, stream)

    async def _exchange(
        self, connection: "Connection", request: h11.Request, body: bytes, answered: list[Answer]
    ) -> None:
        is_reusable = False
        try:
            is_reusable = await connection.exchange(request, body, answered)
        finally:
            if is_reusable:
                self._keep(connection)
            else:
                connection.stream.close()

    def _kept_connection(self, place: Place) -> "Connection | None":
        kept = self._idle.get(place)
        while kept:
            connection = kept.pop()
            self._kept -= 1
            if not kept:
                del self._idle[place]
            if time.monotonic() < connection.expires_at and not connection.stream.is_readable:
                return connection
            connection.stream.close()
        return None

    def _keep(self, connection: "Connection") -> None:
        if self._kept >= KEPT_MAX:
            oldest = next(iter(self._idle))
            self._idle[oldest].popleft().stream.close()
            self._kept -= 1
            if not self._idle[oldest]:
                del self._idle[oldest]
        connection.expires_at = time.monotonic() + KEEP_SECONDS
        self._idle.setdefault(connection.place, deque()).append(connection)
        self._kept += 1


class Connection:
    """HTTP/1.1 with one receiver, one exchange after another."""

    def __init__(self, place: Place, stream: Stream) -> None:
        self.place = place
        self.stream = stream
        self.expires_at = 0.0  # of the monotonic clock, while it is kept
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_MAX)

    async def exchange(self, request: h11.Request, body: bytes, answered: list[Answer]) -> bool:
        """Adds the answer to `answered` as soon as its head is there; whether another exchange may follow.

        Raises OSError, h11.ProtocolError or AnswerTooLarge. The answer's body is read as far as BODY_MAX.
        """
        http = self._http
        parts = (request, h11.Data(body), h11.EndOfMessage())
        whole = b"".join(http.send(part) or b"" for part in parts)
        # A receiver may answer and close before it has read everything; then its answer is still there to be read.
        with contextlib.suppress(OSError):
            await self.stream.write(whole)
        read = 0
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await self.stream.read())
            elif isinstance(event, h11.Response):
                answered.append(Answer(event.status_code, _retry_after(event.headers)))
            elif isinstance(event, h11.Data):
                read += len(event.data)
                if read > BODY_MAX:
                    return False
            elif isinstance(event, h11.EndOfMessage):
                break
            elif not isinstance(event, h11.InformationalResponse):
                return False
        # What came along with the answer, or its end, forbids another exchange.
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE or http.trailing_data != (b"", False):
            return False
        http.start_next_cycle()
        return True


@lru_cache(maxsize=1024)
def _parsed(url: str) -> tuple[Place, str, str]:
    """Where to connect, the request's target and its Host; raises UnsupportedScheme or ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise UnsupportedScheme
    place = Place(parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme])
    host = f"[{place.host}]" if ":" in place.host else place.host
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return place, target, host if parts.port is None else f"{host}:{parts.port}"


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> timedelta | None:
    """Seconds or an HTTP date; None for anything else. The schedule decides how far it is heeded."""
    value = next((value for name, value in headers if name == b"retry-after"), None)
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
    if isinstance(failure, NotConnected):
        return "the connection was refused"
    if isinstance(failure, UnsupportedScheme):
        return "the address is not http or https"
    if isinstance(failure, h11.ProtocolError):
        return "the answer was not understood"
    return "the connection broke"
