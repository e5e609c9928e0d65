"""The outermost layer, pure ASGI: request id, access log, body limits, security headers and odd paths."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import unquote

import structlog

from payagg.application.deadline import begin_request, renew
from payagg.application.telemetry import count, observe
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import REFERENCE_SHAPE
from payagg.entrypoints.http.server.client_address import address_of
from payagg.entrypoints.http.server.cors import Headers, Origins
from payagg.entrypoints.http.server.errors import OPTIONS_PROBE, refusal_envelope, try_later
from payagg.entrypoints.http.server.rate_limits import RATES, rate_headers
from payagg.entrypoints.http.server.routing import CALLER, OBJECT, Operation
from payagg.entrypoints.http.server.uvicorn_protocol import Cycle
from payagg.entrypoints.http.server.wire import FIELDS, IS_HEAD, REQUEST_ID, fields_of, request_id_of
from payagg.entrypoints.setting_kinds import Networks

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Any, Any, Any], Awaitable[None]]

UNDECLARED_BODY_MAX = 64 * 1024  # bytes, where the route is none of the API: the inbox of `dev`
BODY_SECONDS = 10.0  # for the whole body, however slowly it drips
SEGMENT_MAX = 2048  # characters of one part of a path; no stored name is as long
SLASH, NO_NAME = b"%2F", b"%EF%BF%BD"
STOPPING = "The server is about to stop."
API_PREFIX = "/api/"
OBJECT_ID = re.compile(r"(?:biz|key|whe|dlv|gw|anm|aud)_[0-9a-f]{32}|gw_[a-z0-9_-]{2,50}")
_SECURITY_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
_API_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
_HSTS = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")
_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"})  # a caller may send any word
_log = structlog.get_logger("payagg.access")


class Body:
    """A receive channel with a cap on bytes, a deadline for the whole body and no decompression.

    The cap is the routed operation's own, so it is looked up at the first read, when the route is known.
    """

    __slots__ = ("_deadline", "_left", "_receive", "_scope", "_seconds", "is_answered", "is_begun", "is_done")

    def __init__(self, scope: Scope, receive: Receive, seconds: float) -> None:
        self._scope = scope
        self._receive = receive
        self._seconds = seconds
        self._deadline = 0.0
        self._left = 0
        self.is_begun = False
        self.is_done = False
        self.is_answered = False  # the answer has begun

    def at_hand(self) -> bytes | None:
        """The whole body where it has come and nobody has begun to read it, as most do with their heads; else None."""
        cycle = getattr(self._receive, "__self__", None)
        if self.is_begun or not isinstance(cycle, Cycle) or cycle.more_body or cycle.disconnected:
            return None
        self._begin()
        content = cycle.take_body()
        if len(content) > self._left:
            raise Refusal(ErrorCode.PAYLOAD_TOO_LARGE)
        self.is_done = True
        return content

    async def __call__(self) -> Message:
        if self.is_done:
            return await self._receive()
        if not self.is_begun:
            self._begin()
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise Refusal(ErrorCode.VALIDATION_ERROR, "The body did not arrive in time.") from None
        if message["type"] == "http.disconnect":
            if self.is_answered:  # it was not asked for as a body, but to learn of this
                return message
            raise Refusal(ErrorCode.VALIDATION_ERROR, "The body ended early.")
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise Refusal(ErrorCode.PAYLOAD_TOO_LARGE)
        self.is_done = not message.get("more_body", False)
        return message

    def _begin(self) -> None:
        self.is_begun = True
        handler: Any = self._scope.get("route_handler")
        opt = handler.opt if handler is not None else {}
        operation: Operation | None = opt.get("operation")
        self._left = operation.body_max if operation is not None else opt.get("body_max", UNDECLARED_BODY_MAX)
        fields = self._scope[FIELDS]
        length: bytes = fields.get(b"content-length", b"")
        if length.isdigit() and int(length[:19]) > self._left:
            raise Refusal(ErrorCode.PAYLOAD_TOO_LARGE)
        if b"content-encoding" in fields and fields[b"content-encoding"].strip().lower() != b"identity":
            raise Refusal(ErrorCode.VALIDATION_ERROR, "Send the body without a content encoding.")


class Answer:
    """A send channel that adds what every answer carries, and notes what was sent."""

    __slots__ = ("_added", "_body", "_scope", "_send", "is_whole", "status")

    def __init__(self, scope: Scope, send: Send, body: Body, added: Iterable[tuple[bytes, bytes]]) -> None:
        self._scope = scope
        self._send = send
        self._body = body
        self._added = added
        self.status = 0  # 0: none was sent
        self.is_whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = self._begin(message["status"], message["headers"])
        elif message["type"] == "http.response.body":
            renew()
            if IS_HEAD in self._scope:
                message["body"] = b""
            self.is_whole = not message.get("more_body", False)
        await self._send(message)

    async def write(self, status: int, headers: Headers, content: bytes) -> None:
        """A whole answer, in one step where the server can: through two messages it takes 4 % of a read longer."""
        sent = self._begin(status, headers)
        if IS_HEAD in self._scope:
            content = b""
        self.is_whole = True
        write = getattr(getattr(self._send, "__self__", None), "write", None)
        if write is None or not write(status, sent, content):
            await self._send({"type": "http.response.start", "status": status, "headers": sent})
            await self._send({"type": "http.response.body", "body": content})

    def _begin(self, status: int, headers: Headers) -> Headers:
        self._body.is_answered = True
        self.status = status
        scope = self._scope
        sent = [*headers, *self._added]
        present = dict(headers)
        rates = scope.get(RATES)  # none where another cell counts
        if rates:
            if b"ratelimit" in present:  # of a refusal, which has nothing of the limit but its time
                sent = [header for header in sent if header[0] != b"ratelimit"]
            sent += rate_headers(rates)
        if scope["path"].startswith(API_PREFIX):
            for header in _API_HEADERS:
                if header[0] not in present:
                    sent.append(header)
        if self._body.is_begun and not self._body.is_done:
            sent.append((b"connection", b"close"))
        return sent


class Edge:
    """Wraps the application: what it adds holds for every answer, the framework's own refusals included."""

    def __init__(
        self,
        app: ASGIApp,
        new_id: Callable[[int], str],
        *,
        base_url: str,
        body_seconds: float,
        cors_origins: Iterable[str] = (),
        proxies: Networks = (),
    ) -> None:
        self._app = app
        self._new_id = new_id
        self._body_seconds = body_seconds
        self._origins = Origins(base_url, cors_origins)
        self._proxies = proxies
        # Servers' logs have a short way for the line of a request.
        lines = structlog.get_config()["logger_factory"]()
        self._log_request = getattr(lines, "request", lambda fields: _log.info("request", **fields))
        self._always = [*_SECURITY_HEADERS]
        if base_url.startswith("https://"):
            self._always.append(_HSTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        begin_request()
        fields = scope.get(FIELDS)
        if fields is None:  # no connection's protocol has looked: it is the console's own call
            fields = scope[FIELDS] = fields_of(scope["headers"])
        request_id = request_id_of(fields, self._new_id)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        scope[REQUEST_ID], scope[RATES] = request_id, []
        method: str = scope["method"]
        preflight = None
        if method == "HEAD":
            # Answered as GET without its body, which is what HEAD means.
            scope = {**scope, "method": "GET", IS_HEAD: True}
        elif method == "OPTIONS":
            # A method no route has: the router's refusal lists every method of the path, its own answer only some.
            scope = {**scope, "method": OPTIONS_PROBE}
            preflight = self._origins.preflight(scope)
        scope["path"] = _routable(scope)
        body = Body(scope, receive, self._body_seconds)
        added = (*self._always, *self._origins.headers(scope), (b"x-request-id", request_id.encode()))
        answer = Answer(scope, send, body, added)
        try:
            if preflight is not None:
                await answer.write(204, preflight, b"")
            else:
                await self._app(scope, body, answer)
        except asyncio.CancelledError:
            # This process is about to end. Whoever has no answer yet gets one, and asks another process.
            if answer.status:
                raise
            chance = int(self._new_id(1), 16) / 256
            farewell: Any = refusal_envelope(try_later(chance, STOPPING))
            await farewell.to_asgi_response()(scope, receive, answer)
        finally:
            self._log(scope, method, answer.status, answer.is_whole, time.monotonic() - started)

    def _log(self, scope: Scope, method: str, status: int, is_whole: bool, seconds: float) -> None:
        """One line a request. The route's template and not the path: a path may hold anything a caller typed."""
        route = scope.get("path_template", "unknown")
        fields: dict[str, Any] = {
            "request_id": scope[REQUEST_ID],
            "method": method,
            "route": route,
            "status": status,
            "ms": int(seconds * 10_000) / 10,
        }
        if not is_whole:
            fields["broken_off"] = True  # by us or by the client, after its status was sent
        known = method if method in _METHODS else "OTHER"
        count("requests", known, route, str(status))
        observe("request_duration_seconds", seconds, known, route)
        parameters = scope.get("path_params", {})
        reference = scope.get("reference") or parameters.get("reference")
        if isinstance(reference, str) and REFERENCE_SHAPE.fullmatch(reference):
            fields["reference"] = reference
        if 400 <= status < 500:
            # Who is refused can be found and stopped; of who is served no address is kept.
            client = scope.get("client")
            address = address_of(client[0], scope["headers"], self._proxies) if client else None
            fields["client"] = str(address) if address else "unknown"
        caller = scope.get(CALLER)
        if caller is not None:
            fields["realm"], fields["subject"] = caller.realm.value, caller.subject
        # What the answer shows, or else the last name of the path, where it has an id's form.
        named = scope.get(OBJECT) or next(reversed(parameters.values()), None)
        if named is not reference and isinstance(named, str) and OBJECT_ID.fullmatch(named):
            fields["object"] = named
        self._log_request(fields)


def _routable(scope: Scope) -> str:
    """The path with what no stored name contains made harmless: it then matches nothing, in the usual envelope.

    NUL would be refused by the database with an error; trailing and doubled slashes the router would forgive. What is
    no name because of its length, or of a slash within it, stays one part of the path, so that its route can say so.
    """
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or b""
    if b"%" in raw and SLASH in raw.upper():
        path = unquote(re.sub(rb"%2[Ff]", NO_NAME, raw).decode("latin-1"))
    if "//" in path or (path.endswith("/") and path != "/"):
        return "/checkout" if path.startswith("/checkout/") else "/\ufffd"  # whose page says so to the payer
    if len(path) > SEGMENT_MAX:
        path = "/".join(part if len(part) <= SEGMENT_MAX else "\ufffd" for part in path.split("/"))
    return path.replace("\x00", "\ufffd")


def note_reference(request: Any, reference: str) -> None:
    """Names the payment in this request's log line where the path does not."""
    request.scope["reference"] = reference
