"""Merchants' servers on loopback: honest ones that remember, and hostile ones."""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers every POST with `answer(received)`, which gives a status and header lines; keeps connections alive."""

    origin: str = ""
    answer: Callable[[Received], tuple[int, str]] = lambda _: (200, "")
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    holding: asyncio.Event | None = None  # when set, answers wait for it

    def told(self, kind: str) -> Counter[str]:
        """How often it heard of each payment, an event that came again under its id counted once."""
        events = {}
        for received in self.received:
            event = json.loads(received.body)
            if event["type"] == kind:
                events[received.headers["webhook-id"]] = event["data"]["reference"]
        return Counter(events.values())

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while (received := await read_request(reader)) is not None:
            self.received.append(received)
            if self.holding is not None:
                await self.holding.wait()
            status, lines = self.answer(received)
            writer.write(f"HTTP/1.1 {status} X\r\n{lines}Content-Length: 2\r\n\r\nok".encode())
            await writer.drain()


async def read_request(reader: asyncio.StreamReader) -> Received | None:
    """None when the client closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(first.split(" ")[1], headers, body)


async def until(what: Callable[[], bool], seconds: float = 90) -> None:
    """Waits for what another task or process brings about; the deadline is only there to fail instead of hang."""
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 - another process cannot set an event here
            await asyncio.sleep(0.02)


@asynccontextmanager
async def listening(talk: Conversation, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that holds `talk` with each connection."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def a_receiver(**fields: object) -> AsyncIterator[Receiver]:
    receiver = Receiver(**fields)  # type: ignore[arg-type]
    async with listening(receiver.talk) as port:
        receiver.origin = f"http://127.0.0.1:{port}"
        yield receiver
