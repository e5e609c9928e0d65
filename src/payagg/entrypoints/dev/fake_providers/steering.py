"""What both fakes share: an application on a loopback port of its own, inside the caller's event loop; JSON answers,
pages and their few assets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from typing import Any

import msgspec
import uvicorn
from litestar import Litestar, Response, get
from litestar.params import FromPath
from litestar.types import ASGIApp
from uvicorn.server import ServerState

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


STOP_SECONDS = 1


@asynccontextmanager
async def serve_asgi(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """Serves `app` on loopback; yields its base URL. Port 0 = a free one.

    It ends with the answers that are under way. Uvicorn's own server looks every 0.1 s whether it may, and hundreds of
    tests would wait for that.
    """
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none", proxy_headers=False)
    config.load()
    state = ServerState()

    def connection() -> asyncio.Protocol:
        return config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", port, backlog=512)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for one in list(state.connections):
            one.shutdown()
        if state.tasks:
            _, late = await asyncio.wait(state.tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
