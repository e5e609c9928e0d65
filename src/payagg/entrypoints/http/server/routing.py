"""How a route is declared: guard, path, query, body, call, envelope, in this order, so that the order of refusals is
the same everywhere: 401 and 403 by the guard, 400 for the path, the query and then the body, and whatever the use case
refuses. Litestar's guards and parameters run before or beside the body, and cannot run twice as a cached key needs. The
description is made from these declarations; operation ids are frozen, as they name functions of generated clients."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

import msgspec
from litestar import Litestar, Request, Response, Router
from litestar.datastructures import MultiDict
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.types import Method

from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.payment import IDEMPOTENCY_KEY_MAX
from payagg.domain.values import REFERENCE_SHAPE, parse_reference
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server.strict_json import printable
from payagg.entrypoints.http.server.uploads import read_upload
from payagg.entrypoints.http.server.wire import FIELDS, ReadyAnswer, decode_body, empty_envelope, envelope, whole_body

# Where the scope carries, for the log line and the audit trail, who called and what was answered.
CALLER, OBJECT = "payagg.caller", "payagg.object"
API_PATH = "/api/v1"
KB = 1024  # bytes
# Litestar remembers where a path leads. With this for its reference, that is one path for all payments.
ANY_REFERENCE = "\0"  # which the edge leaves in no path
_REFERENCE = re.compile(rf"/({REFERENCE_SHAPE.pattern})(?=/|\Z)")
AnyRequest = Request[Any, Any, Any]
Caller = TypeVar("Caller")
Caller_co = TypeVar("Caller_co", covariant=True)
Body = TypeVar("Body")
T = TypeVar("T")


class LateRequest(AnyRequest):
    """Litestar prepares twenty caches of a request before anybody asks for one, 2 % of a read: here the first question
    does it."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope, self.receive, self.send = scope, receive, send

    @cached_property
    def query_params(self) -> MultiDict[Any]:
        """Litestar makes it anew for each who asks: a list of payments asks ten times."""
        return super().query_params

    def __getattr__(self, name: str) -> Any:
        super().__init__(self.scope, self.receive, self.send)
        return object.__getattribute__(self, name)


class Admit(Protocol[Caller_co]):
    """Lets the caller in and goes on, or refuses. It may go on twice when the first time was refused."""

    async def __call__(
        self, request: AnyRequest, use_cases: Services, proceed: Callable[[Caller_co], Awaitable[T]], /
    ) -> T: ...


@dataclass(frozen=True)
class Guard(Generic[Caller]):
    """Who may call. `scheme` names the credential in the description (None: there is none), `errors` what `admit`
    refuses with."""

    admit: Admit[Caller]
    scheme: str | None = None
    errors: tuple[ErrorCode, ...] = ()


@dataclass(frozen=True)
class Operation:
    """One endpoint's declaration, which runs it and from which the OpenAPI document and the tests read. `errors` are
    beyond those that its guard, path and body bring. `id` is what generated clients name their methods after: it never
    changes."""

    id: str
    summary: str
    tag: str
    guard: Guard[Any]
    returns: Any = None  # None = the envelope has no `data`
    status: int = 200
    replay_status: int | None = None  # a second success status, for idempotent replays
    body: Any = None  # a Struct, decoded strictly from JSON, or bytes: the raw body
    body_max: int = 0  # bytes of the body; a longer one is refused before it is read whole
    errors: tuple[ErrorCode, ...] = ()
    paginated: bool = False
    query: Mapping[str, Any] = field(default_factory=dict)
    query_required: tuple[str, ...] = ()
    description: str = ""
    request_headers: Mapping[str, Any] = field(default_factory=dict)  # required ones, beyond the credential
    media_types: tuple[str, ...] = ("application/json",)  # of the success response
    upload: str | None = None  # the part that holds the file, when the body is multipart/form-data
    upload_max: int = 0  # bytes of that file
    headers: tuple[str, ...] = ()  # of the success response, beyond those on every answer

    @property
    def takes_any_query(self) -> bool:
        """Whether other parameters are passed over, which are refused elsewhere. So it is where no
        credential is asked for: payers' browsers, mail programs and providers append parameters of their own there, to
        the addresses of the hosted checkout, of logos and of inbound webhooks."""
        return self.guard.scheme is None

    @property
    def query_names(self) -> frozenset[str]:
        return frozenset([*self.query, *(("page", "perPage") if self.paginated else ())])

    @property
    def is_keyed(self) -> bool:
        """Whether the header `Idempotency-Key` may carry the body's field."""
        return "idempotency_key" in getattr(self.body, "__struct_fields__", ())


@dataclass(slots=True)
class Call(Generic[Caller, Body]):
    """A request that was let in and whose path and body are right. `path` has the parameters by name."""

    request: AnyRequest
    services: Services
    caller: Caller
    path: Mapping[str, str]
    body: Body


Handler = Callable[[Call[Caller, Body]], Awaitable[Any]]


async def dispatch(app: Litestar, scope: Any, receive: Any, send: Any) -> None:
    """Calls the handlers of `route` itself. Between Litestar's router and a handler stand layers for dependencies,
    guards, caches, exceptions and conversions, of which these handlers need none: 15 % of a read. Every other request,
    and what no handler is for, goes Litestar's way; with tracing, which is one of its layers, all do."""
    endpoint = None
    if scope["type"] == "http":
        try:
            path = scope["path"]
            named = _REFERENCE.search(path) if "-" in path else None
            if named is not None:
                path = path[: named.start(1)] + ANY_REFERENCE + path[named.end() :]
            _, handler, _, parameters, template = app.asgi_router.handle_routing(path, scope["method"])
            if named is not None:
                parameters = {name: named[1] if value == ANY_REFERENCE else value for name, value in parameters.items()}
            endpoint = handler.opt.get("endpoint")
        except HTTPException:
            pass  # Litestar refuses it anew
    if endpoint is None:
        await Litestar.__call__(app, scope, receive, send)
        return
    scope["app"] = scope["litestar_app"] = app
    scope["route_handler"], scope["path_params"], scope["path_template"] = handler, parameters, template
    request = LateRequest(scope, receive, send)
    try:
        answer = await endpoint(request)
    except Exception as error:  # noqa: BLE001 - of each kind one of the handlers takes it
        handlers: Any = handler.resolve_exception_handlers()
        answer = next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)(request, error)
    write = getattr(send, "write", None)  # of the edge, unless something in between looks at messages
    if write is not None and isinstance(answer, ReadyAnswer):
        await write(answer.status_code, answer.sent_headers, answer.content)
    else:
        await answer.to_asgi_response(app=None, request=request)(scope, receive, send)


class Part(Router):
    """Routes that one application has: Litestar would copy each handler twice, for a second one."""

    def __deepcopy__(self, _: Any) -> "Part":
        return self


class Routes(list[HTTPRouteHandler]):
    """The operations of one tag, in the order in which they are declared."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self._tag = tag

    def add(
        self, method: Method, path: str, *, guard: Guard[Caller], **more: Any
    ) -> Callable[[Handler[Caller, Body]], HTTPRouteHandler]:
        """Declares the decorated function, which only calls the use case: its result is the `data` of the envelope,
        unless it is a Response already. Its annotations say what it takes and returns, its name is the operation's id,
        its docstring's first sentence the summary, and the rest the description; the other arguments are
        Operation's."""

        def declare(handler: Handler[Caller, Body]) -> HTTPRouteHandler:
            taken, returned = handler.__annotations__.values()
            made: Any = get_origin(returned)
            body = None if "upload" in more else get_args(taken)[1]
            summary, _, rest = " ".join((handler.__doc__ or "").split()).partition(". ")
            named = {"id": camel(handler.__name__), "tag": self._tag, "body": None if body is NoneType else body}
            words = {"summary": summary.removesuffix("."), "description": rest}
            described: dict[str, Any] = named | words | ({} if made is Response else {"returns": returned}) | more
            operation = Operation(guard=guard, **described)
            endpoint = _endpoint(operation, handler, has_reference="{reference:str}" in path)
            opt = {"operation": operation, "endpoint": endpoint}
            route = HTTPRouteHandler(path, http_method=method, status_code=operation.status, name=operation.id, opt=opt)
            self.append(route(endpoint))
            return self[-1]

        return declare


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def _endpoint(
    operation: Operation, handler: Handler[Any, Any], *, has_reference: bool
) -> Callable[[AnyRequest], Awaitable[Response[bytes]]]:
    admit = operation.guard.admit
    has_body = operation.body is not None or operation.upload is not None
    takes_any_query, known = operation.takes_any_query, operation.query_names

    async def endpoint(request: AnyRequest) -> Response[bytes]:
        use_cases = services(request)
        parameters: Mapping[str, str] = request.scope["path_params"]
        sent: Any = None  # the body or its refusal, read once however often the guard goes on

        async def proceed(caller: Any) -> Any:  # a type that is made up of others costs each request a frame
            nonlocal sent
            if has_reference:
                parse_reference(parameters["reference"])
            if request.scope["query_string"] and not takes_any_query:
                _ensure_known(request, known)
            if has_body:
                if sent is None:
                    sent = await _read_body(request, operation)
                if isinstance(sent, Refusal):
                    raise sent
            scope: Any = request.scope
            scope[CALLER] = caller
            result = await handler(Call(request, use_cases, caller, parameters, sent))
            scope[OBJECT] = getattr(result, "id", None)
            return answer_result(operation, result)

        return await admit(request, use_cases, proceed)

    return endpoint


def services(request: AnyRequest) -> Services:
    app: Any = request.scope["litestar_app"]
    found: Services = app.services
    return found


def answer_result(operation: Operation, result: Any) -> Response[bytes]:
    if isinstance(result, Response):
        return result
    return envelope(result, operation.status) if operation.returns is not None else empty_envelope()


def _ensure_known(request: AnyRequest, known: frozenset[str]) -> None:
    """A misspelt filter would be a list of everything, which nobody takes for a mistake."""
    for name in request.query_params:
        if name not in known:
            words = f"The parameters here are {', '.join(sorted(known))}." if known else "There are no parameters here."
            raise invalid(printable(name), f"Is not a known query parameter. {words}")


async def _read_body(request: AnyRequest, operation: Operation) -> Any:
    """The body as the operation declares it, or the refusal of it."""
    try:
        if operation.upload is not None:
            return await read_upload(request, operation.upload, operation.upload_max)
        if operation.body is bytes:
            return await whole_body(request)
        body = await decode_body(request, operation.body)
        return _with_idempotency_key(request, body) if operation.is_keyed else body
    except Refusal as refusal:
        return refusal


def _with_idempotency_key(request: AnyRequest, command: msgspec.Struct) -> msgspec.Struct:
    """The command with its idempotency key, which the header `Idempotency-Key` may carry instead of the field."""
    scope: Any = request.scope
    sent: bytes | None = scope[FIELDS].get(b"idempotency-key")
    if sent is None:
        return command
    try:
        key = sent.decode()
    except UnicodeDecodeError:
        raise invalid("idempotencyKey", "The header must be valid UTF-8.") from None
    if not 1 <= len(key) <= IDEMPOTENCY_KEY_MAX:
        raise invalid("idempotencyKey", f"The header must appear once, with 1 to {IDEMPOTENCY_KEY_MAX} characters.")
    if getattr(command, "idempotency_key", None) not in (None, key):
        raise invalid("idempotencyKey", "The header and the field differ.")
    return msgspec.structs.replace(command, idempotency_key=key)
