"""Who is calling: admin and merchant bearers, secret keys. Each function answers 401 and 403 before anything else."""

from dataclasses import dataclass
from typing import Any

from litestar import Request

from payagg.application.ports import KeyHolder
from payagg.domain.api_key import parse_secret
from payagg.domain.business import Business, ensure_manager
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services

ADMIN_ROLES = frozenset({"SUPER_ADMIN", "ADMIN"})
READING_ROLES = ADMIN_ROLES | {"SUPPORT"}
ACCEPTED_MAX = 4096  # keys a process remembers, about 1 KiB each


@dataclass(frozen=True)
class Manager:
    """A verified merchant user who manages `business`."""

    subject: str
    business: Business

    @property
    def actor(self) -> str:
        return f"user:{self.subject}"


def services(request: Request[Any, Any, Any]) -> Services:
    found: Services = request.app.state.services
    return found


def bearer(request: Request[Any, Any, Any]) -> str:
    """The presented credential; raises UNAUTHORIZED when there is not exactly one `Authorization: Bearer`."""
    values = [value for name, value in request.scope["headers"] if name == b"authorization"]
    if len(values) != 1 or not values[0].startswith(b"Bearer ") or len(values[0]) == len(b"Bearer "):
        raise Refusal(ErrorCode.UNAUTHORIZED)
    return str(values[0][len(b"Bearer ") :].decode("latin-1"))


def admin(request: Request[Any, Any, Any], *, reads: bool) -> str:
    """The administrator's subject; `reads` also admits SUPPORT. Raises UNAUTHORIZED or FORBIDDEN."""
    claims = services(request).tokens.read(bearer(request))
    role = claims.get("role")
    allowed = READING_ROLES if reads else ADMIN_ROLES
    if claims.get("type") != "admin" or not isinstance(role, str) or role not in allowed:
        raise Refusal(ErrorCode.FORBIDDEN)
    return str(claims["sub"])


async def manager(request: Request[Any, Any, Any], business_id: str, *, changes: bool) -> Manager:
    """The user who manages `business_id`; `changes` also requires the business to be ACTIVE.

    Raises UNAUTHORIZED, EMAIL_NOT_VERIFIED, FORBIDDEN (no such business and no such membership alike) or
    BUSINESS_RESTRICTED.
    """
    claims = services(request).tokens.read(bearer(request))
    if claims.get("type") != "merchant":
        raise Refusal(ErrorCode.FORBIDDEN)
    if claims.get("emailVerified") is not True:
        raise Refusal(ErrorCode.EMAIL_NOT_VERIFIED)
    subject = str(claims["sub"])
    async with services(request).store.begin() as tx:
        ensure_manager(await tx.businesses.role(business_id, subject))
        business = await tx.businesses.get(business_id)
    if business is None:
        raise Refusal(ErrorCode.FORBIDDEN)
    if changes:
        business.ensure_active()
    return Manager(subject, business)


async def known_key(request: Request[Any, Any, Any]) -> KeyHolder:
    """The key and its business, whatever the business's standing; raises UNAUTHORIZED or INVALID_API_KEY."""
    held = services(request)
    environment, digest = parse_secret(bearer(request))
    holder = await held.store.find_key(digest)
    if holder is None or holder.key.environment is not environment:
        raise Refusal(ErrorCode.INVALID_API_KEY)
    holder.key.ensure_accepted()
    now = held.clock.now()
    if holder.key.is_use_stale(now):
        await held.store.touch_key(holder.key.id, now)
    return holder


async def secret_key(request: Request[Any, Any, Any]) -> KeyHolder:
    """An accepted key; also raises BUSINESS_RESTRICTED or KYC_REQUIRED."""
    holder = await known_key(request)
    holder.business.ensure_may_use(holder.key.environment)
    accepted = services(request).accepted_keys
    accepted.pop(holder.key.secret_hash, None)
    accepted[holder.key.secret_hash] = holder
    if len(accepted) > ACCEPTED_MAX:
        del accepted[next(iter(accepted))]  # the one read longest ago
    return holder


def accepted_key(request: Request[Any, Any, Any]) -> KeyHolder | None:
    """The presented key as `secret_key` accepted it within the last minute or so, if this process remembers. It may
    have been revoked since: whoever acts on it proves in the same statement that it was not."""
    held = services(request)
    _, digest = parse_secret(bearer(request))
    holder = held.accepted_keys.get(digest)
    return holder if holder is not None and not holder.key.is_use_stale(held.clock.now()) else None


async def sandbox_key(request: Request[Any, Any, Any]) -> KeyHolder:
    """An accepted sandbox key; a live one is refused with SANDBOX_ONLY before anything about the business."""
    holder = await known_key(request)
    if holder.key.environment is not Environment.SANDBOX:
        raise Refusal(ErrorCode.SANDBOX_ONLY)
    holder.business.ensure_may_use(Environment.SANDBOX)
    return holder
