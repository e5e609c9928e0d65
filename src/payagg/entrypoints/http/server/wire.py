"""Decodes a route's body and query, and encodes its envelope."""

import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from litestar import Request, Response
from litestar.response import Stream

from payagg.application.schemas.views import check_after
from payagg.domain.checks import is_storable
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.entrypoints.http.server.strict_json import decode

T = TypeVar("T")
W = TypeVar("W", bound=Enum)
WORD_MAX = 64  # characters
IS_HEAD = "payagg.head"  # in the scope of a request that is answered as GET without its body
FIELDS = "payagg.fields"  # where the scope carries what `fields_of` finds
REQUEST_ID = "payagg.request_id"  # and the id of the request in logs, in its response and in the audit trail
REQUEST_ID_BYTES = 12
_ID_OF_A_CALLER = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_encoder = msgspec.json.Encoder()


class Envelope(msgspec.Struct):
    success: bool
    data: Any


class PageEnvelope(msgspec.Struct):
    success: bool
    data: Any
    meta: Any


class PaginationMeta(msgspec.Struct, rename="camel"):
    """`nextCursor` is there where `after` was given in place of `page`: pass it as the next `after`."""

    page: int
    per_page: int
    total: int
    next_cursor: str | msgspec.UnsetType | None = msgspec.UNSET


def fields_of(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    """A request's header fields by lower-case name. One that came more than once is empty, as no sender may leave it to
    us which of them counts."""
    found = dict(headers)
    if len(found) < len(headers):
        names = Counter(name for name, _ in headers)
        found.update((name, b"") for name, times in names.items() if times > 1)
    return found


def request_id_of(fields: Mapping[bytes, bytes], new_id: Callable[[int], str]) -> str:
    """The caller's own where it is sane, a new one otherwise."""
    own = fields.get(b"x-request-id", b"")
    return own.decode() if own and _ID_OF_A_CALLER.fullmatch(own) else new_id(REQUEST_ID_BYTES)


def envelope(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    return _json(Envelope(True, data), status, headers)


def empty_envelope(headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """Success with nothing to tell: the one envelope without `data`."""
    return _json({"success": True}, 200, headers)


def page_envelope(
    data: Any, page: int, per_page: int, total: int, next_cursor: str | msgspec.UnsetType | None = msgspec.UNSET
) -> Response[bytes]:
    return _json(PageEnvelope(True, data, PaginationMeta(page, per_page, total, next_cursor)), 200, None)


def error_envelope(
    status: int, code: str, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    error = {"code": code, "message": message} | ({"field": field} if field is not None else {})
    return _json({"success": False, "error": error}, status, headers)


class ReadyAnswer(Response[bytes]):
    """A response whose bytes are final. Litestar's own asks of what types its headers and cookies are, and merges those
    of each layer, of which this service has none: 6 % of a read."""

    def __init__(
        self, body: bytes, status: int, headers: Mapping[str, str] | None, content_type: bytes = b"application/json"
    ) -> None:
        self.content, self.status_code, self.headers = body, status, dict(headers) if headers else {}
        self.sent_headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
        if headers:
            self.sent_headers += [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        return self._send

    async def _send(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.sent_headers})
        await send({"type": "http.response.body", "body": self.content})


def _json(value: Any, status: int, headers: Mapping[str, str] | None) -> Response[bytes]:
    return ReadyAnswer(_encoder.encode(value), status, headers)


async def csv_stream(request: Request[Any, Any, Any], rows: AsyncGenerator[bytes, None], name: str) -> Stream:
    """A stream of `rows` as a file of that name. The first page is read before the answer begins, so its failure has a
    status; a later failure breaks the answer off, which the client can detect."""
    begun = [await anext(rows), await anext(rows, b"")]

    async def whole() -> AsyncIterator[bytes]:
        async with aclosing(rows):  # a client that stops reading ends its export at once
            for part in begun:
                yield part
            if not request.scope.get(IS_HEAD):
                async for part in rows:
                    yield part

    return Stream(whole(), media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def decode_body(request: Request[Any, Any, Any], kind: type[T]) -> T:
    """The request's JSON body as `kind`, decoded strictly; raises VALIDATION_ERROR that names the field.

    Litestar's own decoding is lenient ("100", 1e2 and 100.0 pass as integers, which changes money), so it is not used.
    """
    scope: Any = request.scope
    media_type: bytes = scope[FIELDS].get(b"content-type", b"")
    if media_type.partition(b";")[0].strip().lower() != b"application/json":
        raise Refusal(ErrorCode.VALIDATION_ERROR, "Send the body as application/json.")
    return decode(await whole_body(request), kind)


async def whole_body(request: Request[Any, Any, Any]) -> bytes:
    """The whole body. The edge keeps its cap and its deadline; Litestar's own parses every header and counts again."""
    at_hand = getattr(request.receive, "at_hand", None)  # of the edge, unless something in between has read it
    content: bytes | None = at_hand() if at_hand is not None else None
    if content is not None:
        return content
    parts = []
    more = True
    while more:
        message: Any = await request.receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def text_query(request: Request[Any, Any, Any], name: str, most: int) -> str | None:
    """A query parameter of at most `most` characters, None when absent; raises VALIDATION_ERROR."""
    values = request.query_params.getall(name, [])
    if len(values) > 1:
        raise invalid(name, "Must appear once.")
    if not values:
        return None
    text: str = values[0]
    if len(text) > most:
        raise invalid(name, f"Must be at most {most} characters.")
    if not is_storable(text) or ("\ufffd" in text and not _is_utf8(request.scope["query_string"])):
        raise invalid(name, "Must be valid text.")
    return text


def _is_utf8(query: bytes) -> bool:
    """Whether what it escapes is: in the place of the rest the framework puts U+FFFD, which anybody may send, too."""
    try:
        unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        return False
    return True


def word_query(request: Request[Any, Any, Any], name: str, words: type[W]) -> W | None:
    """A query parameter that is one of `words`, None when absent; raises VALIDATION_ERROR."""
    text = text_query(request, name, WORD_MAX)
    if text is None:
        return None
    if text not in words.__members__:
        raise invalid(name, f"Must be one of {', '.join(words.__members__)}.")
    return words[text]


FLAG = {"type": "string", "enum": ["true", "false"], "default": "false"}


def flag_query(request: Request[Any, Any, Any], name: str) -> bool:
    """Whether a query parameter is true, False when absent; raises VALIDATION_ERROR."""
    text = text_query(request, name, WORD_MAX)
    if text not in (None, "true", "false"):
        raise invalid(name, "Must be true or false.")
    return text == "true"


def integer_query(request: Request[Any, Any, Any], name: str, default: int, low: int, high: int) -> int:
    """A decimal query parameter between `low` and `high`; raises VALIDATION_ERROR."""
    values = request.query_params.getall(name, [])
    if not values:
        return default
    if len(values) > 1 or not re.fullmatch(r"[0-9]{1,18}", values[0]) or not low <= int(values[0]) <= high:
        raise invalid(name, f"Must be an integer from {low} to {high}.")
    return int(values[0])


def after_parameter(prefix: str) -> dict[str, Any]:
    """`after` as the description of a list names it: the id, of this prefix, of a page's last row."""
    return {"after": {"type": "string", "pattern": f"^{prefix}_[0-9a-f]{{32}}$", "minLength": 36, "maxLength": 36}}


def after_query(request: Request[Any, Any, Any], prefix: str) -> str | None:
    """`after`, None when absent; raises VALIDATION_ERROR."""
    after = text_query(request, "after", WORD_MAX)
    check_after(after, prefix, "the `nextCursor` of a page")
    return after


def cursor_parameters(prefix: str, default: int, most: int) -> dict[str, Any]:
    """`after` and `limit`."""
    limit = {"type": "integer", "format": "int32", "minimum": 1, "maximum": most, "default": default}
    return {**after_parameter(prefix), "limit": limit}


def cursor_query(request: Request[Any, Any, Any], prefix: str, default: int, most: int) -> tuple[str | None, int]:
    """`after` and `limit`; raises VALIDATION_ERROR."""
    return after_query(request, prefix), integer_query(request, "limit", default, 1, most)


PAGE_MAX = 10_000_000


def page_query(request: Request[Any, Any, Any]) -> tuple[int, int]:
    """`page` and `perPage` of a paginated list (interface, Limits)."""
    return integer_query(request, "page", 1, 1, PAGE_MAX), integer_query(request, "perPage", 20, 1, 100)
