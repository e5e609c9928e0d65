"""What both fakes share: the steering address, JSON answers, pages, their few assets."""

from html import escape
from importlib.resources import files
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.params import FromPath

from payagg.entrypoints.dev.fake_providers.book import Book

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


def application(book: Book, handlers: list[Any]) -> Litestar:
    """A fake's application: its own routes, assets, and `/_fake` for steering (GET shows, POST changes)."""

    @get("/_fake")
    async def show_state() -> Response[bytes]:
        return json(book.summary())

    @post("/_fake", status_code=200)
    async def change_steering(request: Request[Any, Any, Any]) -> Response[bytes]:
        try:
            wish = msgspec.json.decode(await request.body(), type=dict[str, Any])
            book.steer(wish)
        except (msgspec.MsgspecError, KeyError, ValueError, TypeError) as error:
            return json({"message": f"not understood: {error}"}, 400)
        return json(book.summary())

    @post("/_fake/release", status_code=200)
    async def release_held(request: Request[Any, Any, Any]) -> Response[bytes]:
        await book.release(backwards=request.query_params.get("order") == "backwards")
        return json(book.summary())

    @get("/assets/{name:str}")
    async def assets(name: FromPath[str]) -> Response[bytes]:
        return asset(name) if name in ("pay.css", "popup.js") else json({"message": "no such file"}, 404)

    return Litestar(
        [show_state, change_steering, release_held, assets, *handlers], openapi_config=None, logging_config=None
    )
