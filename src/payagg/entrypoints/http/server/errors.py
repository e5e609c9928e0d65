"""Every exception becomes an error envelope here; the only place with the status numbers of refusals."""

from collections.abc import Callable
from typing import Any

import structlog
from litestar import Response
from litestar.exceptions import HTTPException

from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.telemetry import trace_of
from payagg.domain.errors import ErrorCode, Kind, Refusal
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.http.server.wire import error_envelope

HTTP_STATUS = {
    Kind.MISDIRECTED: 421,
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.INVALID: 400,
    Kind.TOO_LARGE: 413,
    Kind.MISSING: 404,
    Kind.WRONG_METHOD: 405,
    Kind.CONFLICT: 409,
    Kind.GONE: 410,
    Kind.THROTTLED: 429,
    Kind.UPSTREAM: 502,
    Kind.UNAVAILABLE: 503,
    Kind.FAULT: 500,
}
OPTIONS_PROBE = "X-OPTIONS"  # what OPTIONS is routed as
# Seconds, spread by chance: a database that fails over is usually back by the second try, and all who were turned away
# at one moment must not come back at one moment.
RETRY_AFTER_MIN, RETRY_AFTER_MAX = 1, 4

# What the framework refuses by itself, in our words: its guards and limits are not used.
_FRAMEWORK = {404: ErrorCode.NOT_FOUND, 405: ErrorCode.METHOD_NOT_ALLOWED}
_log = structlog.get_logger("payagg.http")


def answer_refusal(_: AnyRequest, refusal: Refusal) -> Response[bytes]:
    return refusal_envelope(refusal)


def refusal_envelope(refusal: Refusal) -> Response[bytes]:
    headers = {"Link": help_link(refusal.code)}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
        if refusal.code.kind is Kind.THROTTLED:
            headers["RateLimit"] = f'"minute";r=0;t={refusal.retry_after}'
    if refusal.cell is not None:
        headers["X-Payagg-Cell"] = refusal.cell
    if refusal.code.kind is Kind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return error_envelope(HTTP_STATUS[refusal.code.kind], refusal.code.name, refusal.message, refusal.field, headers)


def help_link(code: ErrorCode) -> str:
    """Where the documentation says what to do about `code` (RFC 8288)."""
    return f'</docs/errors#{code.name.lower()}>; rel="help"'


def try_later(chance: float, message: str | None = None) -> Refusal:
    """503 to somebody whose luck is `chance`, from 0 to 1."""
    seconds = RETRY_AFTER_MIN + int(chance * (RETRY_AFTER_MAX - RETRY_AFTER_MIN + 1))
    return Refusal(ErrorCode.SERVICE_UNAVAILABLE, message, retry_after=seconds)


def unavailable(request: AnyRequest, error: Exception) -> Response[bytes]:
    return refusal_envelope(_unavailable(request, error))


def _unavailable(request: AnyRequest, error: Exception) -> Refusal:
    _log.warning("service unavailable", reason=str(error))
    return try_later(services(request).entropy.chance())


def refused_by_framework(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """404, 405 and every other refusal of the framework; its own words may repeat the input and are not used."""
    if error.status_code >= 500:
        return answer_failure(request, error)
    code = _FRAMEWORK.get(error.status_code, ErrorCode.VALIDATION_ERROR)
    headers = {"Link": help_link(code)}
    if code is ErrorCode.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("allow", "").split(", ")
        headers["Allow"] = ", ".join(sorted({*allowed, *(("HEAD",) if "GET" in allowed else ())}))
        if request.scope["method"] == OPTIONS_PROBE:
            return Response(b"", status_code=204, headers={"Allow": headers["Allow"]})
    return error_envelope(HTTP_STATUS[code.kind], code.name, code.message, None, headers)


def answer_failure(request: AnyRequest, error: Exception) -> Response[bytes]:
    return refusal_envelope(_failed(request, error))


def _failed(request: AnyRequest, error: Exception) -> Refusal:
    """A fault of ours: logged with its traceback, answered without a detail. What lacked memory may succeed later."""
    _log.error("request failed", trace=trace_of(error))
    if isinstance(error, MemoryError):
        return try_later(services(request).entropy.chance())
    return Refusal(ErrorCode.INTERNAL_ERROR)


def pages(
    refused: Callable[[AnyRequest, Refusal], Response[bytes]],
) -> dict[int | type[Exception], Callable[[AnyRequest, Any], Response[bytes]]]:
    """For routes that answer with pages: each failure is logged as the API does, and `refused` shows it."""

    def show_unavailable(request: AnyRequest, error: Exception) -> Response[bytes]:
        return refused(request, _unavailable(request, error))

    def show_failed(request: AnyRequest, error: Exception) -> Response[bytes]:
        return refused(request, _failed(request, error))

    return {Refusal: refused, Unavailable: show_unavailable, Conflict: show_unavailable, Exception: show_failed}


EXCEPTION_HANDLERS: dict[int | type[Exception], Callable[[AnyRequest, Any], Response[bytes]]] = {
    Refusal: answer_refusal,
    Unavailable: unavailable,
    Conflict: unavailable,
    HTTPException: refused_by_framework,
    Exception: answer_failure,
}
