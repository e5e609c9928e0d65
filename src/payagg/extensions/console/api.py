"""The console's calls of our own API, in this process: with the routes, guards, limits, log lines and audit entries of
any client, so the console can do nothing that the API cannot.

httpx.ASGITransport buffers the whole answer, and an export has no bound, so it is not used.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

from litestar import Response

from payagg.application.accounts.access import Credential, SignedIn
from payagg.entrypoints.http.api.auth import SIGNED_IN
from payagg.entrypoints.http.server.routing import API_PATH, AnyRequest
from payagg.entrypoints.http.server.wire import IS_HEAD, REQUEST_ID

JSON = "application/json"
# Who asks, and under which of our names, which `dev` looks at.
PASSED_IN = frozenset({b"host", b"x-forwarded-for"})
# Of a streamed answer; the edge adds the others again for the page's own answer.
PASSED_ON = frozenset({b"content-type", b"content-disposition"})


class ApiRefused(Exception):
    """The API's refusal, with its envelope's message."""

    def __init__(self, status: int, error: Mapping[str, Any], retry_after: str | None) -> None:
        super().__init__(error["code"])
        self.status = status
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.field: str | None = error.get("field")
        self.retry_after = retry_after


@dataclass(frozen=True)
class ApiAnswer:
    """The API's answer: the envelope's `data` and `meta`, and the headers by lower-case name."""

    data: Any
    meta: Any
    headers: Mapping[str, str]


@dataclass(frozen=True)
class OwnApi:
    """Calls with the session's `credential` on behalf of the client of `request`. Each raises ApiRefused."""

    request: AnyRequest
    credential: Credential

    async def get(self, path: str, **query: str | int | None) -> Any:
        return (await self.call("GET", path, query=query)).data

    async def post(self, path: str, body: Any = None) -> Any:
        return (await self.call("POST", path, body)).data

    async def patch(self, path: str, body: Any) -> Any:
        return (await self.call("PATCH", path, body)).data

    async def delete(self, path: str) -> Any:
        return (await self.call("DELETE", path)).data

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        media_type: str = JSON,
    ) -> ApiAnswer:
        """`body` is encoded as JSON unless it is bytes of `media_type`; a query parameter that is None is left out."""
        sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        started: dict[str, Any] = {}
        parts: list[bytes] = []
        ended = asyncio.Event()

        async def take(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    ended.set()

        await self._send(method, path, query, sent, media_type if sent else None, take, ended.wait)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in started["headers"]}
        envelope = json.loads(b"".join(parts))
        if not envelope["success"]:
            raise ApiRefused(started["status"], envelope["error"], headers.get("retry-after"))
        return ApiAnswer(envelope.get("data"), envelope.get("meta"), headers)

    def stream(self, path: str, **query: str | None) -> Response[bytes]:
        """The answer of a GET as a stream, for downloads; a refusal is the API's envelope."""
        return _Passed(self, path, query)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: bytes,
        media_type: str | None,
        send: Any,
        end: Callable[[], Awaitable[Any]],
    ) -> None:
        """`end` returns when the answer has ended or its reader has gone: a streaming route waits for the client's
        disconnect, which must not come earlier."""
        outer: Any = self.request.scope
        target = API_PATH + path
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        headers = [
            (b"x-request-id", outer[REQUEST_ID].encode()),
            *((name, value) for name, value in outer["headers"] if name in PASSED_IN),
        ]
        if isinstance(self.credential, str):
            headers.append((b"authorization", f"Bearer {self.credential}".encode("latin-1", "replace")))
        if media_type is not None:
            headers += [(b"content-type", media_type.encode("latin-1")), (b"content-length", str(len(body)).encode())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": outer["scheme"],
            "path": unquote(target),
            "raw_path": target.encode(),
            "query_string": urlencode(given).encode(),
            "root_path": "",
            "headers": headers,
            "client": outer.get("client"),
            "server": outer.get("server"),
            "state": {},
            SIGNED_IN: self.credential if isinstance(self.credential, SignedIn) else None,
        }

        is_read = False

        async def receive() -> Any:
            nonlocal is_read
            if is_read:
                await end()
                return {"type": "http.disconnect"}
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.request.app(scope, receive, send)  # type: ignore[arg-type]


class _Passed(Response[bytes]):
    """An answer of the API, streamed as ours."""

    def __init__(self, api: OwnApi, path: str, query: Mapping[str, str | None]) -> None:
        super().__init__(b"")
        self.call = api, path, query

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            async def send_on(message: Any) -> None:
                if message["type"] == "http.response.start":
                    kept = [(name, value) for name, value in message["headers"] if name.lower() in PASSED_ON]
                    message = {**message, "headers": [*kept, (b"cache-control", b"no-store")]}
                await send(message)

            async def end() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass  # the body of the page's own request

            api, path, query = self.call
            method = "HEAD" if scope.get(IS_HEAD) else "GET"
            await api._send(method, path, query, b"", None, send_on, end)

        return answer


def part(name: str) -> str:
    """`name` as one part of a path, whatever it holds."""
    return quote(name, safe="")
