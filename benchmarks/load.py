"""The load of every benchmark: keep-alive connections on raw sockets, driven by one event loop.

A journey's next request is made of the last answer, which wrk cannot do, and libraries cost as much as the server. A
client that only looks for the status and the length costs a tenth of the cheapest request, and runs on the other core.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import uvloop

from benchmarks.figures import Round

T = TypeVar("T")


class WrongAnswer(Exception):
    """Not the answer that is measured."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    seconds: float

    def data(self) -> Any:
        return json.loads(self.body)["data"]

    def checked(self, status: int, word: bytes = b"") -> "Reply":
        """Itself, when it has the status and holds `word`; raises WrongAnswer."""
        if self.status != status or word not in self.body:
            raise WrongAnswer(f"{self.status} {self.body[:300]!r}")
        return self


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request under way. Knows answers with a Content-Length alone."""

    def __init__(self) -> None:
        self._buffer = b""
        self.head = b""  # of the last answer, in lower case
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        self.head = head = self._buffer[:end].lower() + b"\r\n"
        at = head.find(b"content-length:")
        whole = end + 4 + (int(head[at + 15 : head.find(b"\r\n", at)]) if at >= 0 else 0)
        if len(self._buffer) >= whole and self._waiting is not None:
            answer = int(self._buffer[9:12]), self._buffer[end + 4 : whole]
            self._buffer, waiting, self._waiting = self._buffer[whole:], self._waiting, None
            if not waiting.done():
                waiting.set_result(answer)

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


async def send_all(connections: Sequence[Connection], requests: Sequence[bytes]) -> list[Reply]:
    """The replies, in the order of the requests; each connection takes the next one when it is free."""
    left, replies = iter(enumerate(requests)), dict[int, Reply]()

    async def send(connection: Connection) -> None:
        for number, request in left:
            replies[number] = await connection.exchange(request)

    await asyncio.gather(*(send(connection) for connection in connections))
    return [replies[number] for number in range(len(requests))]


def rate(port: int, connections: int, seconds: float, act: Callable[[Connection], Awaitable[float]]) -> Round:
    """Each connection acts again and again for so long. `act` gives the seconds that count, or raises WrongAnswer."""
    taken: list[float] = []
    wrong: list[WrongAnswer] = []

    async def keep_on(connection: Connection, end: float) -> None:
        while time.monotonic() < end:
            try:
                taken.append(await act(connection))
            except WrongAnswer as answer:
                wrong.append(answer)

    async def run() -> float:
        async with connected(port, connections) as opened:
            begun = time.monotonic()
            await asyncio.gather(*(keep_on(one, begun + seconds) for one in opened))
            return time.monotonic() - begun

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        took = runner.run(run())
    for answer in wrong[:3]:
        print(f"  not the answer that is measured: {answer}", file=sys.stderr, flush=True)
    return Round.of([one * 1000 for one in taken], took, len(wrong))


def exchanges(call: Callable[[], bytes], status: int = 200) -> Callable[[Connection], Awaitable[float]]:
    """An act: one request, and its answer."""

    async def act(connection: Connection) -> float:
        return (await connection.exchange(call())).checked(status).seconds

    return act
