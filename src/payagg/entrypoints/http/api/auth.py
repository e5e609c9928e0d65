"""The guards: the credential each requires and its refusals. The rules are in `Access`."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from payagg.application.accounts.access import Access, Administrator, Credential, Manager, MerchantUser, SignedIn
from payagg.application.ports.accounts import KeyHolder
from payagg.domain.api_key import PresentedKey, parse_secret
from payagg.domain.audit import Actor
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment, parse_reference
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server.client_address import counted_as
from payagg.entrypoints.http.server.rate_limits import client_ip, client_of, limits
from payagg.entrypoints.http.server.routing import KB, AnyRequest, Call, Guard
from payagg.entrypoints.http.server.wire import FIELDS, REQUEST_ID

T = TypeVar("T")
Acting = TypeVar("Acting", bound=Administrator | Manager | KeyHolder)
SIGNED_IN = "signed_in"  # the scope's key in a console's call: no client's request can set it
BODY_MAX = 64 * KB
TOO_MANY_BYTES = "The bodies of this business have filled their share of the day. Retry-After says when there is room."
TOO_MANY_CHANGES = "The managers of this business have made too many changes. Retry-After says when to go on."
REFUSED_BODY = (ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE)
NO_PAYMENT = (ErrorCode.INVALID_REFERENCE, ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.RATE_LIMITED)


def by(call: Call[Acting, Any]) -> Actor:
    """The actor of `call`, for the audit trail."""
    address = client_ip(call.request)
    scope: Any = call.request.scope
    return Actor(call.caller.realm, call.caller.subject, str(address) if address else None, scope[REQUEST_ID])


def bearer(request: AnyRequest) -> str:
    """The presented credential; raises UNAUTHORIZED unless there is exactly one `Authorization: Bearer`, its scheme in
    any letter case (RFC 9110, 11.1)."""
    scope: Any = request.scope
    value: bytes = scope[FIELDS].get(b"authorization", b"")
    scheme, _, presented = value.partition(b" ")
    if scheme.lower() != b"bearer" or not presented:
        raise Refusal(ErrorCode.UNAUTHORIZED)
    return presented.decode("latin-1")


def credential(request: AnyRequest) -> Credential:
    """The user of the console's own call, or the presented bearer; raises UNAUTHORIZED."""
    scope: Any = request.scope
    signed_in: SignedIn | None = scope.get(SIGNED_IN)
    return signed_in or bearer(request)


def secret(request: AnyRequest, use_cases: Services) -> tuple[PresentedKey, KeyHolder | None]:
    """The presented secret key, counted against its limit whether valid or not: by its digest, before any statement;
    and its holder, where this process has it cached. Then it counts against the business's limit too: only a key valid
    within the last minute, so a revoked key takes nothing from the others. Raises UNAUTHORIZED, INVALID_API_KEY or
    RATE_LIMITED."""
    presented, own, now = parse_secret(bearer(request)), limits(request), use_cases.clock.now()
    environment, digest = presented
    own.keys.hit(request, digest, now)
    known = use_cases.access.recall(presented, now)
    owner: str | bytes = digest
    if known is not None:
        owner = f"{known.business.id} {environment is Environment.LIVE}"
        own.businesses.hit(request, owner, now)
    if request.scope["method"] == "POST":
        own.bytes_a_day[environment].spend(owner, declared_bytes(request), now, TOO_MANY_BYTES)
    return presented, known


def declared_bytes(request: AnyRequest) -> int:
    """Bytes of the body by Content-Length; without it, the largest body of these routes."""
    scope: Any = request.scope
    fields = scope[FIELDS]
    if b"transfer-encoding" in fields:
        return BODY_MAX
    return min(int(fields.get(b"content-length") or 0), BODY_MAX)


async def _anyone(_: AnyRequest, __: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    return await proceed(None)


async def _as_administrator(
    request: AnyRequest, use_cases: Services, proceed: Callable[[Administrator], Awaitable[T]], *, changes: bool
) -> T:
    return await proceed(await use_cases.access.administrator(credential(request), changes=changes))


async def _gateway_changes(
    request: AnyRequest, use_cases: Services, proceed: Callable[[Administrator], Awaitable[T]]
) -> T:
    administrator = await use_cases.access.administrator(credential(request), changes=True)
    use_cases.elsewhere.ensure_gateways_are_set_here()
    return await proceed(administrator)


async def _merchant(request: AnyRequest, use_cases: Services, proceed: Callable[[MerchantUser], Awaitable[T]]) -> T:
    return await proceed(await use_cases.access.merchant(credential(request)))


async def _as_manager(
    request: AnyRequest, use_cases: Services, proceed: Callable[[Manager], Awaitable[T]], *, changes: bool
) -> T:
    business_id = request.path_params["business_id"]
    manager = await use_cases.access.manager(credential(request), business_id, changes=changes)
    if changes:
        limits(request).changes.spend(business_id, 1, use_cases.clock.now(), TOO_MANY_CHANGES)
    return await proceed(manager)


async def _fresh_key(
    request: AnyRequest,
    use_cases: Services,
    proceed: Callable[[KeyHolder], Awaitable[T]],
    *,
    find: Callable[[Access, PresentedKey], Awaitable[KeyHolder]],
) -> T:
    presented, _ = secret(request, use_cases)
    return await proceed(await find(use_cases.access, presented))


async def _cached_key(request: AnyRequest, use_cases: Services, proceed: Callable[[KeyHolder], Awaitable[T]]) -> T:
    presented, cached = secret(request, use_cases)
    return await use_cases.access.with_key(presented, cached, proceed)


async def _public_reference(request: AnyRequest, use_cases: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    # The reference acts as a credential here, so its form comes first. Only unknown references count as guesses, as
    # payers may share an address with somebody who guesses.
    own, reference = limits(request), request.path_params["reference"]
    parse_reference(reference)
    own.references.hit(request, reference, use_cases.clock.now())
    try:
        return await proceed(None)
    except Refusal as refusal:
        if refusal.code is ErrorCode.PAYMENT_NOT_FOUND:
            own.references.give_back(request, reference)  # a guess must not evict a real link's bucket
            await use_cases.elsewhere.ensure_payment_here(reference)  # another installation counts its own guesses
            await own.guesses.hit(client_of(request))
        raise


async def _charging_reference(request: AnyRequest, use_cases: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    own, client = limits(request), client_of(request)
    own.addresses.hit(request, client, use_cases.clock.now())
    try:
        return await _public_reference(request, use_cases, proceed)
    except Refusal as refusal:
        _refused_body(request, use_cases, refusal)
        if refusal.code in NO_PAYMENT:
            # Guesses and references each have their own limit, apart from the payers'.
            own.addresses.give_back(request, client)
        raise


async def _provider_signature(request: AnyRequest, use_cases: Services, proceed: Callable[[None], Awaitable[T]]) -> T:
    # Before the body is read and hashed: a flood must cost less here than at its sender.
    address = client_ip(request)
    if address is None or not any(address in network for network in use_cases.settings.provider_networks):
        await limits(request).inbound.hit(counted_as(address))
    return await proceed(None)


def _refused_body(request: AnyRequest, use_cases: Services, refusal: Refusal) -> None:
    """Counts a refused body against its sender; past the limit raises RATE_LIMITED in its place. A valid body is always
    accepted, as payers share addresses."""
    if refusal.code in REFUSED_BODY:
        limits(request).bodies.hit(request, client_of(request), use_cases.clock.now())


_ADMIN = (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN)
_MERCHANT = (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN, ErrorCode.EMAIL_NOT_VERIFIED)
_KEY = (ErrorCode.UNAUTHORIZED, ErrorCode.INVALID_API_KEY, ErrorCode.BUSINESS_RESTRICTED, ErrorCode.RATE_LIMITED)
_REFERENCE = (ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.RATE_LIMITED)

anyone = Guard[None](_anyone)
admin_reads = Guard(partial(_as_administrator, changes=False), "adminBearer", _ADMIN)
admin_changes = Guard(partial(_as_administrator, changes=True), "adminBearer", _ADMIN)
# For gateways, which the home cell alone may change where there are cells.
gateway_changes = Guard(_gateway_changes, "adminBearer", _ADMIN)
merchant = Guard(_merchant, "merchantBearer", _MERCHANT)
manager_reads = Guard(partial(_as_manager, changes=False), "merchantBearer", _MERCHANT)
_CHANGE = (*_MERCHANT, ErrorCode.BUSINESS_RESTRICTED, ErrorCode.RATE_LIMITED)
manager_changes = Guard(partial(_as_manager, changes=True), "merchantBearer", _CHANGE)
secret_key = Guard(partial(_fresh_key, find=Access.secret_key), "secretKey", (*_KEY, ErrorCode.KYC_REQUIRED))
# Only for calls whose statements all check the key: otherwise a key revoked a minute ago would still work.
cached_key = Guard(_cached_key, "secretKey", (*_KEY, ErrorCode.KYC_REQUIRED))
sandbox_key = Guard(partial(_fresh_key, find=Access.sandbox_key), "secretKey", (*_KEY, ErrorCode.SANDBOX_ONLY))
public_reference = Guard(_public_reference, None, _REFERENCE)
# For calls that start a charge or call a provider: also limited by reference and by address.
charging_reference = Guard(_charging_reference, None, _REFERENCE)
# The signature itself covers the raw body and needs the gateway's secrets, so the use case verifies it, first of all.
provider_signature = Guard(_provider_signature, None, (ErrorCode.INVALID_WEBHOOK_SIGNATURE, ErrorCode.RATE_LIMITED))
