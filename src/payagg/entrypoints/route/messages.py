"""Requests and answers on their way through the router: headers of one hop, bodies with a bound on what is kept, and a
share of the connections to cells for clients that keep one waiting."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.server.client_address import Counted
from payagg.entrypoints.http.server.middleware import BODY_SECONDS

# A body up to here is kept until the answer has come, and can be sent to another cell; JSON of the API is no longer.
KEPT_BYTES = 64 * 1024
# An answer up to here is kept for a client that reads slowly, while its cell's connection serves the next one.
KEPT_ANSWER = 256 * 1024
# Of an answer or a body that is longer the client keeps a connection to the cell: so many all in all, and each client;
# ten times its share, as an IPv6 site has, is less than all.
WAITED_FOR_MAX, WAITED_FOR_EACH = 60, 5
# RFC 9110, 7.6.1; the length is told anew.
ONE_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade", b"content-length",
})  # fmt: skip
# Our server writes its own date; which cell answered is nobody's business.
NOT_ANSWERED = (ONE_HOP - {b"content-length"}) | {b"date", b"x-payagg-cell"}
Headers = list[tuple[bytes, bytes]]


@dataclass
class Incoming:
    """One request. `rest` are the messages behind the kept part of the body; with one it can be sent once."""

    method: str
    target: bytes
    headers: Headers
    body: bytes
    rest: AsyncIterator[bytes] | None = field(default=None, repr=False)

    @property
    def is_repeatable(self) -> bool:
        return self.rest is None

    def stream(self) -> httpx.AsyncByteStream:
        return httpx.ByteStream(self.body) if self.rest is None else _Both(self.body, self.rest)


@dataclass(frozen=True)
class _Both(httpx.AsyncByteStream):
    first: bytes
    rest: AsyncIterator[bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.first
        async for part in self.rest:
            yield part


async def receive_request(
    scope: Any, receive: Any, client: str, request_id: str, seconds: float = BODY_SECONDS
) -> Incoming:
    """The request with as much of its body as is kept; raises VALIDATION_ERROR for one that comes too slowly."""
    sent: Headers = scope["headers"]
    named = {option.strip().lower() for name, value in sent if name == b"connection" for option in value.split(b",")}
    dropped = ONE_HOP | named | {b"x-request-id", b"x-forwarded-for"}
    headers = [header for header in sent if header[0] not in dropped]
    # Ours stands last: a cell reads from there, as far as it trusts who wrote.
    hops = [value for name, value in sent if name == b"x-forwarded-for"]
    headers.append((b"x-forwarded-for", b", ".join([*hops, client.encode()])))
    headers.append((b"x-request-id", request_id.encode()))
    raw, query = scope["raw_path"], scope["query_string"]
    target = raw + b"?" + query if query else raw
    length = next((value for name, value in sent if name == b"content-length"), None)
    has_body = length not in (None, b"0") or any(name == b"transfer-encoding" for name, _ in sent)
    if not has_body:
        if length is not None:
            headers.append((b"content-length", length))
        return Incoming(scope["method"], target, headers, b"")
    deadline = asyncio.get_running_loop().time() + seconds
    body, is_whole = await _read_body(receive, deadline)
    if is_whole:
        headers.append((b"content-length", b"%d" % len(body)))
        return Incoming(scope["method"], target, headers, body)
    headers.append((b"content-length", length) if length is not None else (b"transfer-encoding", b"chunked"))
    return Incoming(scope["method"], target, headers, body, _rest(receive, deadline))


async def _read_body(receive: Any, deadline: float) -> tuple[bytes, bool]:
    """Up to KEPT_BYTES of the body, or a part more, and whether that is all of it."""
    parts, size = [], 0
    while size <= KEPT_BYTES:
        part, more = await _part(receive, deadline)
        parts.append(part)
        size += len(part)
        if not more:
            return b"".join(parts), True
    return b"".join(parts), False


async def _rest(receive: Any, deadline: float) -> AsyncIterator[bytes]:
    more = True
    while more:
        part, more = await _part(receive, deadline)
        yield part


async def _part(receive: Any, deadline: float) -> tuple[bytes, bool]:
    # The whole body has as long as at a cell: one that drips would hold a connection to the cell.
    try:
        async with asyncio.timeout_at(deadline):
            message = await receive()
    except TimeoutError:
        raise Refusal(ErrorCode.VALIDATION_ERROR, "The body did not arrive in time.") from None
    if message["type"] == "http.disconnect":
        raise Refusal(ErrorCode.VALIDATION_ERROR, "The body ended early.")
    return message.get("body", b""), message.get("more_body", False)


class WaitedFor:
    """The requests whose clients hold a connection to a cell, as their bodies or the reading of their answers go on."""

    def __init__(self) -> None:
        self._all = 0
        self._clients: Counter[str] = Counter()

    @contextmanager
    def one_of(self, client: Counted) -> Iterator[None]:
        """Raises SERVICE_UNAVAILABLE where its share, or all of it, is taken."""
        is_taken = any(self._clients[name] >= WAITED_FOR_EACH * times for name, times in client)
        if is_taken or self._all >= WAITED_FOR_MAX:
            raise Refusal(ErrorCode.SERVICE_UNAVAILABLE, "Too many long requests are under way.", retry_after=1)
        names = [name for name, _ in client]
        self._all += 1
        self._clients.update(names)
        try:
            yield
        finally:
            self._all -= 1
            self._clients.subtract(names)
            self._clients += Counter()  # forgets who has none


async def send_response(response: httpx.Response, send: Any, wait_for_client: Callable[[], object]) -> None:
    """Passes the answer on: a short one once it is whole and its cell is free, a longer one as it comes. Before that
    `wait_for_client` is called, which may refuse."""
    headers = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in NOT_ANSWERED]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    parts, kept = _parts(response), bytearray()
    async for part in parts:
        kept += part
        if len(kept) > KEPT_ANSWER:
            break
    else:
        await response.aclose()
        await send(start)
        await send({"type": "http.response.body", "body": bytes(kept)})
        return
    wait_for_client()
    await send(start)
    await send({"type": "http.response.body", "body": bytes(kept), "more_body": True})
    async for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    if response.is_stream_consumed:
        yield response.content
        return
    stream: Any = response.stream
    async for part in stream:
        yield part
