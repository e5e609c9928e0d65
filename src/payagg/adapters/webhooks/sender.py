"""One bounded POST to a merchant. Nothing a receiver does raises here, and only the status is stored."""

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools

from payagg.adapters.system import SystemClock
from payagg.adapters.webhooks.addresses import CheckedNetwork
from payagg.adapters.webhooks.http1 import HttpAnswer, HttpConnection, NoAnswer
from payagg.adapters.webhooks.resolver import Resolve, Resolver
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.domain.values import ascii_url

TRY_SECONDS = 15.0  # the whole attempt: look-up, connection, TLS, request and answer
KEEP_SECONDS = 20.0  # an idle connection is reused for this long
TIRED_OF_WAITING = 408  # what a server may say before it closes an idle connection
KEPT_MAX = 400  # as many as tries at once: one host may serve many merchants. They count against the open files.
USER_AGENT = "payagg-webhooks/1"
PORTS = {"http": 80, "https": 443}
HEADERS = f"content-type: application/json\r\nuser-agent: {USER_AGENT}\r\naccept: */*\r\naccept-encoding: identity\r\n"
_VISIBLE = re.compile(r"[!-~]+")
_ONE_LINE = re.compile(r"[ -~]*")


class Place(NamedTuple):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int


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
        self._network = CheckedNetwork(resolve or Resolver(), allow_loopback=allow_loopback)
        self._tls = tls
        self._deadline = deadline
        self._idle: dict[Place, deque[tuple[float, HttpConnection]]] = {}  # each until a moment of the monotonic clock
        self._kept = 0

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAttemptResult:
        started = time.monotonic()
        answered: list[HttpAnswer] = []
        error: str | None = None
        try:
            async with asyncio.timeout(self._deadline):
                await self._post(url, headers, body, answered)
        except TimeoutError:
            error = "no answer in time"
        except Exception as failure:  # noqa: BLE001 - whatever a receiver or its URL causes is one failed attempt
            error = _words(failure)
        milliseconds = int((time.monotonic() - started) * 1000)
        if not answered:
            return DeliveryAttemptResult(None, error or "no answer", milliseconds)
        # The status is the answer, whatever happened to the body.
        status, retry_after = answered[0]
        return DeliveryAttemptResult(
            status, None if 200 <= status < 300 else f"answered {status}", milliseconds, _delay(retry_after)
        )

    async def close(self) -> None:
        for kept in self._idle.values():
            for _, connection in kept:
                connection.close()
        self._idle.clear()

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes, answered: list[HttpAnswer]) -> None:
        place, head = _parse_url(url)
        request = _request(head, headers, body)
        connection = self._kept_connection(place)
        if connection is not None:
            try:
                await self._exchange(place, connection, request, answered)
                if answered[0].status != TIRED_OF_WAITING:
                    return
                answered.clear()  # it crossed the request, which may be repeated (RFC 9110, 15.5.9)
            except (OSError, httptools.HttpParserError):
                # The receiver may close an idle connection at any moment; before an answer that is no evidence against
                # it.
                if answered:
                    raise
        await self._exchange(place, await self._connect(place), request, answered)

    async def _connect(self, place: Place) -> HttpConnection:
        dialled = await self._network.dial(place.host, place.port)
        is_secure = place.scheme == "https"
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(dialled),
                sock=dialled,
                ssl=(self._tls or _default_tls()) if is_secure else None,
                server_hostname=place.host.rstrip(".") if is_secure else None,  # RFC 6066, 3: without the root's dot
            )
        except BaseException:
            dialled.close()
            raise
        return connection

    async def _exchange(
        self, place: Place, connection: HttpConnection, request: bytes, answered: list[HttpAnswer]
    ) -> None:
        is_reusable = False
        try:
            is_reusable = await connection.exchange(request, answered)
        finally:
            if is_reusable:
                self._keep(place, connection)
            else:
                connection.close()

    def _kept_connection(self, place: Place) -> HttpConnection | None:
        idle = self._idle.get(place)
        while idle:
            expires_at, connection = idle.pop()
            self._kept -= 1
            if not idle:
                del self._idle[place]
            if time.monotonic() < expires_at and connection.is_usable:
                return connection
            connection.close()
        return None

    def _keep(self, place: Place, connection: HttpConnection) -> None:
        if self._kept >= KEPT_MAX:
            oldest = next(iter(self._idle))
            self._idle[oldest].popleft()[1].close()
            self._kept -= 1
            if not self._idle[oldest]:
                del self._idle[oldest]
        self._idle.setdefault(place, deque()).append((time.monotonic() + KEEP_SECONDS, connection))
        self._kept += 1


@lru_cache(maxsize=1024)
def _parse_url(url: str) -> tuple[Place, str]:
    """Where to connect, and what every request to it begins with; raises NoAnswer or ValueError."""
    if urlsplit(url).scheme not in PORTS:
        raise NoAnswer("the address is not http or https")
    parts = urlsplit(ascii_url(url))
    place = Place(parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme])
    host = f"[{place.host}]" if ":" in place.host else place.host
    if parts.port is not None:
        host = f"{host}:{parts.port}"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not (_VISIBLE.fullmatch(host) and _VISIBLE.fullmatch(target)):
        raise ValueError("neither a host nor a target has spaces, control characters or others than ASCII")
    return place, f"POST {target} HTTP/1.1\r\nhost: {host}\r\n{HEADERS}"


def _request(head: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The whole request; raises ValueError for a value that would begin another line."""
    if not all(map(_ONE_LINE.fullmatch, headers.values())):
        raise ValueError("a header's value is one line of ASCII")
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return f"{head}{lines}content-length: {len(body)}\r\n\r\n".encode("ascii") + body


def _delay(retry_after: bytes | None) -> timedelta | None:
    """Seconds or an HTTP date; None for anything else. The schedule bounds its effect."""
    if retry_after is None:
        return None
    text = retry_after.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text[:9]))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(at.replace(tzinfo=at.tzinfo or UTC) - SystemClock().now(), timedelta(0))


def _words(failure: Exception) -> str:
    """The delivery log's text."""
    if isinstance(failure, NoAnswer):
        return str(failure)
    if isinstance(failure, ssl.SSLCertVerificationError):
        return "the TLS certificate was refused"
    if isinstance(failure, ssl.SSLError):
        return "the TLS handshake failed"
    if isinstance(failure, httptools.HttpParserError):
        return "the answer was not understood"
    return "the connection broke"


@cache
def _default_tls() -> ssl.SSLContext:
    """Reading the system's certificates takes 30 ms: once per process, and few but the worker need it."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
