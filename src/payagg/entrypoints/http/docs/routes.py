"""The site and the descriptions over HTTP, made once at the first request for a page."""

import asyncio
import gzip
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.docs.description import Audience, describe, described_for
from payagg.entrypoints.http.docs.pages import MISSING
from payagg.entrypoints.http.server.page_assets import takes_gzip
from payagg.entrypoints.settings import Settings

CACHED = {"Cache-Control": "public, max-age=300"}
HEADERS = {
    **CACHED,
    "Vary": "Accept-Encoding",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
TYPES = {
    **{"css": "text/css", "js": "text/javascript", "md": "text/markdown", "txt": "text/plain"},
    **{"png": "image/png", "svg": "image/svg+xml"},
}


def routes_for(settings: Settings) -> list[HTTPRouteHandler]:
    """`/docs` and what is under it, `/openapi.json`, and the description of each audience, read once, by the first
    request that needs it."""
    document = cache(partial(describe, settings))

    @cache
    def files() -> Mapping[str, tuple[bytes, bytes]]:
        from payagg.entrypoints.http.docs.site import DocsSite  # what it renders with is slow to load, and rarely used

        return {name: (body, gzip.compress(body, mtime=0)) for name, body in DocsSite(document()).files().items()}

    @cache
    def openapi_for(audience: Audience | None) -> bytes:
        return msgspec.json.encode(document() if audience is None else described_for(audience, document()))

    async def page(request: Request[Any, Any, Any], name: str) -> Response[bytes]:
        # Rendering takes a third of a second, once: payments go on meanwhile.
        made = await asyncio.to_thread(files)
        is_missing = name not in made or name == MISSING
        if is_missing and "text/html" not in request.headers.get("accept", ""):
            raise Refusal(ErrorCode.NOT_FOUND)
        plain, zipped = made[MISSING if is_missing else name]
        is_zipped = takes_gzip(request.headers.get("accept-encoding", ""))
        headers = {**HEADERS, "Content-Encoding": "gzip"} if is_zipped else HEADERS
        kind = TYPES.get(name.rpartition(".")[2], MediaType.HTML)
        kind = MediaType.HTML if is_missing else kind
        status = 404 if is_missing else 200
        return Response(zipped if is_zipped else plain, media_type=kind, headers=headers, status_code=status)

    @get("/docs")
    async def first(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await page(request, "")

    @get("/docs/{name:str}")
    async def other(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
        return await page(request, name)

    @get("/llms.txt")
    async def llms(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await page(request, "llms.txt")

    @get("/openapi.json")
    async def openapi() -> Response[bytes]:
        return Response(await asyncio.to_thread(openapi_for, None), media_type=MediaType.JSON, headers=CACHED)

    @get("/openapi/{file:str}")
    async def openapi_of(file: FromPath[str]) -> Response[bytes]:
        audience = next((one for one in Audience if f"{one.word}.json" == file), None)
        if audience is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        return Response(await asyncio.to_thread(openapi_for, audience), media_type=MediaType.JSON, headers=CACHED)

    return [first, other, llms, openapi, openapi_of]
