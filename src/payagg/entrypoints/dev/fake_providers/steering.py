"""What both fakes share: JSON answers, pages, their few assets, and the chosen faults."""

import asyncio
import logging
from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

import msgspec
from litestar import Litestar, Response, get
from litestar.params import FromPath
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from payagg.entrypoints.dev.fake_providers.book import Book, Fault

_ASSETS = files("payagg.entrypoints.dev.fake_providers") / "assets"
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action *; base-uri 'none'; "
    "frame-ancestors {ancestors}"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/assets/pay.css">
</head>
<body>
<main>
{content}
</main>
{script}
</body>
</html>
"""


def json(value: Any, status: int = 200) -> Response[bytes]:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def page(title: str, content: str, *, script: str = "", ancestors: str = "'none'") -> Response[bytes]:
    """A page whose `content` is trusted HTML; `script` names one of the assets."""
    tag = f'<script src="/assets/{escape(script)}"></script>' if script else ""
    body = _PAGE.format(title=escape(title), content=content, script=tag)
    headers = {"Content-Security-Policy": PAGE_POLICY.format(ancestors=ancestors), "Cache-Control": "no-store"}
    return Response(body.encode(), media_type="text/html; charset=utf-8", headers=headers)


def asset(name: FromPath[str]) -> Response[bytes]:
    media_type = "text/css" if name.endswith(".css") else "text/javascript"
    return Response((_ASSETS / name).read_bytes(), media_type=media_type)


def naira(kobo: int) -> str:
    return f"₦{kobo // 100:,}.{kobo % 100:02d}"


def application(handlers: list[Any]) -> Litestar:
    """A fake's application: its own routes, and assets."""

    @get("/assets/{name:str}")
    async def assets(name: FromPath[str]) -> Response[bytes]:
        return asset(name) if name in ("pay.css", "popup.js") else json({"message": "no such file"}, 404)

    return Litestar([assets, *handlers], openapi_config=None, logging_config=None)


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
