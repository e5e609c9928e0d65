"""Faults of the fake providers, one for each API call as chosen in `Book.faults`, and both fakes served with them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from payagg.entrypoints.dev.fake_providers import payaza as payazas
from payagg.entrypoints.dev.fake_providers import paystack as paystacks
from payagg.entrypoints.dev.fake_providers.book import Book
from payagg.entrypoints.dev.fake_providers.payaza import FakePayaza, fake_payaza
from payagg.entrypoints.dev.fake_providers.paystack import FakePaystack, fake_paystack
from payagg.entrypoints.dev.fake_providers.steering import serve_asgi


class Fault(Enum):
    """What happens to one API call. Those marked *done* take effect at the provider."""

    SLOW = "SLOW"  # done, one second late
    HANG = "HANG"  # not done, no answer
    LOST_REPLY = "LOST_REPLY"  # done, no answer
    RESET = "RESET"  # done, the connection breaks in the middle of the answer
    SERVER_ERROR = "SERVER_ERROR"  # 500 with a page instead of JSON
    GARBAGE = "GARBAGE"  # 200 with something that is not JSON
    HUGE = "HUGE"  # 200 with megabytes
    RATE_LIMITED = "RATE_LIMITED"
    REFUSED_KEY = "REFUSED_KEY"


HUGE_CHUNK = b" " * 65536
HUGE_CHUNKS = 64
SLOW_SECONDS = 1.0


class BrokenOffError(Exception):
    """Raised after part of an answer: the server then cuts the connection. It is intended, so it is not logged."""


logging.getLogger("uvicorn.error").addFilter(lambda line: not (line.exc_info and line.exc_info[0] is BrokenOffError))


class Faulty:
    """Applies one fault of the book to each API call, never to pages and control."""

    def __init__(self, app: ASGIApp, book: Book, is_api: Callable[[str], bool], refused_key: tuple[int, bytes]) -> None:
        self._app = app
        self._book = book
        self._is_api = is_api
        self._refused_key = refused_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if str(scope["type"]) != "http" or not self._is_api(scope["path"]) or not self._book.faults:
            await self._app(scope, receive, send)
            return
        fault = self._book.faults.popleft()
        if fault is Fault.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
            await self._app(scope, receive, send)
        elif fault in (Fault.LOST_REPLY, Fault.RESET):
            said: list[Message] = []
            await self._app(scope, receive, _into(said))
            if fault is Fault.LOST_REPLY:
                await _wait_for_disconnect(receive)
            else:
                await _half(said, send)
        elif fault is Fault.HANG:
            await _wait_for_disconnect(receive)
        elif fault is Fault.HUGE:
            await send(_start(200, b"application/json"))
            for _ in range(HUGE_CHUNKS):
                await send({"type": "http.response.body", "body": HUGE_CHUNK, "more_body": True})
            await send({"type": "http.response.body", "body": b"{}", "more_body": False})
        else:
            status, body = {
                Fault.SERVER_ERROR: (500, b"<html>Internal Server Error</html>"),
                Fault.GARBAGE: (200, b"<html>Welcome</html>"),
                Fault.RATE_LIMITED: (429, b'{"status":false,"message":"Too many requests"}'),
                Fault.REFUSED_KEY: self._refused_key,
            }[fault]
            await send(_start(status, b"application/json"))
            await send({"type": "http.response.body", "body": body, "more_body": False})


def _start(status: int, media_type: bytes, length: int | None = None) -> Message:
    headers = [(b"content-type", media_type)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": status, "headers": headers}


def _into(said: list[Message]) -> Send:
    async def keep(message: Message) -> None:
        said.append(message)

    return keep


async def _wait_for_disconnect(receive: Receive) -> None:
    """Waits until the caller has given up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _half(said: list[Message], send: Send) -> None:
    body = b"".join(message.get("body", b"") for message in said if message["type"] == "http.response.body")
    await send(_start(200, b"application/json", len(body)))
    await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    raise BrokenOffError


def faulty_paystack(fake: FakePaystack) -> ASGIApp:
    paths = ("/transaction", "/refund", "/dispute")
    return Faulty(fake_paystack(fake), fake.book, lambda path: path.startswith(paths), paystacks.REFUSED_KEY)


def faulty_payaza(fake: FakePayaza) -> ASGIApp:
    return Faulty(fake_payaza(fake), fake.book, lambda path: path.startswith("/live/"), payazas.REFUSED_KEY)


@dataclass(frozen=True)
class FakeServers:
    paystack: FakePaystack
    payaza: FakePayaza


@asynccontextmanager
async def serve_fakes(
    paystack: FakePaystack | None = None, payaza: FakePayaza | None = None
) -> AsyncIterator[FakeServers]:
    """Both fakes, running at their `base_url` on loopback ports of their own, inside the caller's event loop."""
    fakes = FakeServers(paystack or FakePaystack(), payaza or FakePayaza())
    async with (
        serve_asgi(faulty_paystack(fakes.paystack)) as first,
        serve_asgi(faulty_payaza(fakes.payaza)) as second,
    ):
        fakes.paystack.base_url, fakes.payaza.base_url = first, second
        yield fakes
