"""The guards: what each asks of the request's credential, and what it refuses with. The rules are Access's."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from payagg.application.access import Administrator, Manager
from payagg.application.ports import KeyHolder
from payagg.domain.audit import Actor
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import parse_reference
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.rate_limits import Limit, client_address, client_ip
from payagg.entrypoints.http.routing import REQUEST_ID, AnyRequest, Call, Guard

T = TypeVar("T")
Acting = TypeVar("Acting", bound=Administrator | Manager | KeyHolder)
SCHEME = b"bearer "


def by(call: Call[Acting, Any]) -> Actor:
    """Who makes the change that `call` asks for, as the audit trail keeps it."""
    address = client_ip(call.request)
    scope: Any = call.request.scope
    return Actor(call.caller.realm, call.caller.subject, str(address) if address else None, scope[REQUEST_ID])


def bearer(request: AnyRequest) -> str:
    """The presented credential; raises UNAUTHORIZED when there is not exactly one `Authorization: Bearer`, whose
    scheme may stand in any letter case (RFC 9110, 11.1)."""
    values = [value for name, value in request.scope["headers"] if name == b"authorization"]
    if len(values) != 1 or values[0][: len(SCHEME)].lower() != SCHEME or len(values[0]) == len(SCHEME):
        raise Refusal(ErrorCode.UNAUTHORIZED)
    return str(values[0][len(SCHEME) :].decode("latin-1"))


async def _anyone(_: AnyRequest, __: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    return await proceed(None)


async def _admin_reads(request: AnyRequest, held: Services, proceed: Callable[[Administrator], Awaitable[T]]) -> T:
    return await proceed(held.access.administrator(bearer(request), changes=False))


async def _admin_changes(request: AnyRequest, held: Services, proceed: Callable[[Administrator], Awaitable[T]]) -> T:
    return await proceed(held.access.administrator(bearer(request), changes=True))


async def _manager_reads(request: AnyRequest, held: Services, proceed: Callable[[Manager], Awaitable[T]]) -> T:
    business_id = request.path_params["business_id"]
    return await proceed(await held.access.manager(bearer(request), business_id, changes=False))


async def _manager_changes(request: AnyRequest, held: Services, proceed: Callable[[Manager], Awaitable[T]]) -> T:
    business_id = request.path_params["business_id"]
    return await proceed(await held.access.manager(bearer(request), business_id, changes=True))


async def _secret_key(request: AnyRequest, held: Services, proceed: Callable[[KeyHolder], Awaitable[T]]) -> T:
    return await proceed(await held.access.secret_key(bearer(request)))


async def _remembered_key(request: AnyRequest, held: Services, proceed: Callable[[KeyHolder], Awaitable[T]]) -> T:
    return await held.access.with_key(bearer(request), proceed)


async def _sandbox_key(request: AnyRequest, held: Services, proceed: Callable[[KeyHolder], Awaitable[T]]) -> T:
    return await proceed(await held.access.sandbox_key(bearer(request)))


async def _public_reference(request: AnyRequest, held: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    # The reference stands for a credential here: its form first, then whether this address has been guessing.
    parse_reference(request.path_params["reference"])
    guesses: Limit = request.app.state.unknown_references
    address = client_address(request)
    guesses.ensure_open(address)
    try:
        return await proceed(None)
    except Refusal as refusal:
        if refusal.code is ErrorCode.PAYMENT_NOT_FOUND:
            await guesses.hit(address)
        raise


async def _provider_signature(request: AnyRequest, held: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    limit: Limit = request.app.state.inbound
    address = client_address(request)
    # Before the body is read and hashed: a flood must cost us less than it costs its sender.
    limit.ensure_open(address)
    await limit.hit(address)
    return await proceed(None)


_MERCHANT = (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN, ErrorCode.EMAIL_NOT_VERIFIED)
_KEY = (ErrorCode.UNAUTHORIZED, ErrorCode.INVALID_API_KEY, ErrorCode.BUSINESS_RESTRICTED)

anyone = Guard[None](_anyone)
admin_reads = Guard(_admin_reads, "adminBearer", (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN))
admin_changes = Guard(_admin_changes, "adminBearer", (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN))
manager_reads = Guard(_manager_reads, "merchantBearer", _MERCHANT)
manager_changes = Guard(_manager_changes, "merchantBearer", (*_MERCHANT, ErrorCode.BUSINESS_RESTRICTED))
secret_key = Guard(_secret_key, "secretKey", (*_KEY, ErrorCode.KYC_REQUIRED))
# For calls whose every statement takes the caller's `proof`: without that a key revoked a minute ago would still do.
remembered_key = Guard(_remembered_key, "secretKey", (*_KEY, ErrorCode.KYC_REQUIRED))
sandbox_key = Guard(_sandbox_key, "secretKey", (*_KEY, ErrorCode.SANDBOX_ONLY))
public_reference = Guard(_public_reference, None, (ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.RATE_LIMITED))
# The signature itself covers the raw body and needs the gateway's secrets, so the use case verifies it, first of all.
provider_signature = Guard(_provider_signature, None, (ErrorCode.INVALID_WEBHOOK_SIGNATURE, ErrorCode.RATE_LIMITED))
