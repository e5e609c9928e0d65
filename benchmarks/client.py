"""The load of the steps and journeys: keep-alive connections on raw sockets, driven by one event loop.

wrk sends what was prepared and reads nothing of the answers, and a journey's next request is made of the last answer.
A client in Python that only looks for the status and the length costs 0.03 ms a request, a tenth of the cheapest
request of the server, and runs on the other core.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

API = "/api/v1"
T = TypeVar("T")
_payers = count(1)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    seconds: float

    def data(self) -> Any:
        return json.loads(self.body)["data"]


def payer() -> dict[str, str]:
    """The header a trusted proxy adds, with an address that nobody had before."""
    number = next(_payers)
    return {"X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}


def request(
    method: str, path: str, headers: dict[str, str] | None = None, *, bearer: str = "", body: Any = None
) -> bytes:
    """The bytes of one request; `body` is JSON, or bytes that are sent as they are."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {bearer}"] if bearer else []
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if method != "GET":
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode() + content


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request under way. Knows answers with a Content-Length alone."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower() + b"\r\n"
        at = head.find(b"content-length:")
        length = int(head[at + 15 : head.find(b"\r\n", at)]) if at >= 0 else 0
        if len(self._buffer) >= end + 4 + length and self._waiting is not None:
            status, body = int(self._buffer[9:12]), self._buffer[end + 4 : end + 4 + length]
            self._buffer, waiting, self._waiting = self._buffer[end + 4 + length :], self._waiting, None
            if not waiting.done():
                waiting.set_result((status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError("the server closed the connection"))

    async def exchange(self, sent: bytes) -> Reply:
        """Raises OSError when the connection breaks."""
        self._waiting = asyncio.get_running_loop().create_future()
        begun = time.perf_counter()
        self._transport.write(sent)
        status, body = await self._waiting
        return Reply(status, body, time.perf_counter() - begun)

    def close(self) -> None:
        self._transport.close()


@asynccontextmanager
async def connected(port: int, number: int) -> AsyncIterator[list[Connection]]:
    loop = asyncio.get_running_loop()
    opened = [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(number)]
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


async def share(
    connections: Sequence[Connection], items: Sequence[T], work: Callable[[Connection, T], Awaitable[None]]
) -> None:
    """Does `work` for each item, each connection taking the next one when it is free."""
    left = iter(items)

    async def take(connection: Connection) -> None:
        for item in left:
            await work(connection, item)

    await asyncio.gather(*(take(connection) for connection in connections))


async def send_all(connections: Sequence[Connection], requests: Sequence[bytes]) -> list[Reply]:
    """The replies, in the order of the requests."""
    replies: list[Reply | None] = [None] * len(requests)

    async def send(connection: Connection, number: int) -> None:
        replies[number] = await connection.exchange(requests[number])

    await share(connections, range(len(requests)), send)
    return [reply for reply in replies if reply is not None]
