"""Who may do what: administrators by role, a business's users by membership, merchants' servers by secret key."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import Clock, KeyStateChanged, TokenReader, Unavailable
from payagg.application.ports.store import Store
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.api_key import PresentedKey
from payagg.domain.audit import Action, Actor, ActorRealm
from payagg.domain.business import Business, ensure_manager
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.domain.values import Environment

ADMIN_ROLES = frozenset({"SUPER_ADMIN", "ADMIN"})
READING_ROLES = ADMIN_ROLES | {"SUPPORT"}
READS = 3  # reads of one key that changes between read and use
REMEMBERED_MAX = 4096  # keys a process remembers, about 1 KiB each
T = TypeVar("T")


@dataclass(frozen=True)
class SignedIn:
    """The claims of somebody whom an issuer signed in to the console; made in this process alone."""

    claims: Mapping[str, Any]


Credential = str | SignedIn  # a bearer token, or a console session's


@dataclass(frozen=True)
class Administrator:
    """A verified administrator whose role allows the request."""

    subject: str
    realm: ClassVar[ActorRealm] = ActorRealm.ADMIN


@dataclass(frozen=True)
class MerchantUser:
    """A verified merchant user."""

    subject: str
    realm: ClassVar[ActorRealm] = ActorRealm.MERCHANT


@dataclass(frozen=True)
class Manager:
    """A verified merchant user who manages `business`."""

    subject: str
    business: Business
    realm: ClassVar[ActorRealm] = ActorRealm.MERCHANT


@dataclass(frozen=True)
class Access:
    """Authenticates and authorises callers; refuses them with 401 or 403."""

    store: Store
    clock: Clock
    tokens: TokenReader
    cached: dict[bytes, KeyHolder] = field(default_factory=dict)  # by hash of the secret, as last accepted

    async def administrator(self, credential: Credential, *, changes: bool) -> Administrator:
        """The administrator; SUPPORT only reads. Raises UNAUTHORIZED or FORBIDDEN."""
        claims = await self._claims(credential)
        role = claims.get("role")
        allowed = ADMIN_ROLES if changes else READING_ROLES
        if claims.get("type") != "admin" or not isinstance(role, str) or role not in allowed:
            raise Refusal(ErrorCode.FORBIDDEN)
        return Administrator(str(claims["sub"]))

    async def merchant(self, credential: Credential) -> MerchantUser:
        """A user of any business or none; raises UNAUTHORIZED, EMAIL_NOT_VERIFIED or FORBIDDEN."""
        return MerchantUser(_merchant(await self._claims(credential)))

    async def manager(self, credential: Credential, business_id: str, *, changes: bool) -> Manager:
        """The user who manages `business_id`; `changes` also requires the business to be ACTIVE.

        Raises UNAUTHORIZED, EMAIL_NOT_VERIFIED, FORBIDDEN (no such business and no such membership alike) or
        BUSINESS_RESTRICTED.
        """
        claims = self._read_claims(credential)
        found = await self.store.find_member(business_id, *_token_identity(claims))
        _ensure_valid(is_revoked=found.is_revoked)
        subject = _merchant(claims)
        ensure_manager(found.role)
        if found.business is None:
            raise Refusal(ErrorCode.FORBIDDEN)
        if changes:
            found.business.ensure_active()
        return Manager(subject, found.business)

    async def secret_key(self, presented: PresentedKey) -> KeyHolder:
        """An accepted key, read now; raises INVALID_API_KEY, BUSINESS_RESTRICTED or KYC_REQUIRED."""
        holder = await self._read(presented)
        holder.business.ensure_may_use(holder.key.environment)
        self._remember(holder)
        return holder

    async def sandbox_key(self, presented: PresentedKey) -> KeyHolder:
        """An accepted sandbox key; a live one is refused with SANDBOX_ONLY before anything about the business."""
        holder = await self._read(presented)
        if holder.key.environment is not Environment.SANDBOX:
            raise Refusal(ErrorCode.SANDBOX_ONLY)
        holder.business.ensure_may_use(Environment.SANDBOX)
        return holder

    def recall(self, presented: PresentedKey, now: datetime) -> KeyHolder | None:
        """The key where it was accepted within the last minute; it may have been revoked since."""
        cached = self.cached.get(presented.secret_hash)
        return None if cached is None or cached.key.is_use_stale(now) else cached

    async def with_key(
        self, presented: PresentedKey, cached: KeyHolder | None, work: Callable[[KeyHolder], Awaitable[T]]
    ) -> T:
        """The result of `work` with the key, `cached` as `recall` has it. `work` passes it to the store, which does
        nothing for a stale key. A key just read can also become stale: it may be revoked, or move to another cell,
        before the store is called.

        A refusal on a cached key is not final: the key is read, the refusals of that read come first, and `work` runs
        again.
        """
        if cached is not None:
            try:
                return await work(cached)
            except (Refusal, KeyStateChanged):
                pass
        for _ in range(READS):
            with suppress(KeyStateChanged):
                return await work(await self.secret_key(presented))
        raise Unavailable("the key kept changing")

    async def _claims(self, credential: Credential) -> Mapping[str, Any]:
        """The claims of a valid credential; raises UNAUTHORIZED, also for a revoked one."""
        claims = self._read_claims(credential)
        _ensure_valid(is_revoked=await self.store.is_revoked(*_token_identity(claims)))
        return claims

    def _read_claims(self, credential: Credential) -> Mapping[str, Any]:
        return credential.claims if isinstance(credential, SignedIn) else self.tokens.read(credential)

    async def _read(self, presented: PresentedKey) -> KeyHolder:
        """The key and its business, whatever the business's status; raises INVALID_API_KEY."""
        holder = await self.store.find_key(presented.secret_hash)
        if holder is None or holder.key.environment is not presented.environment:
            raise Refusal(ErrorCode.INVALID_API_KEY)
        holder.key.ensure_accepted()
        now = self.clock.now()
        if holder.key.is_use_stale(now):
            await self.store.touch_key(holder.key.id, now)
        return holder

    def _remember(self, holder: KeyHolder) -> None:
        digest = holder.key.secret_hash
        self.cached.pop(digest, None)
        self.cached[digest] = KeyHolder(holder.key, holder.business, is_cached=True)
        if len(self.cached) > REMEMBERED_MAX:
            del self.cached[next(iter(self.cached))]  # the one read longest ago


def _token_identity(claims: Mapping[str, Any]) -> tuple[str | None, str, datetime]:
    """What a revocation may name of a token: `jti`, `sub` and when it was issued."""
    issued_at = datetime.fromtimestamp(max(0, int(claims.get("iat", 0))), UTC)
    return claims.get("jti"), str(claims["sub"]), issued_at


def _ensure_valid(*, is_revoked: bool) -> None:
    if is_revoked:
        raise Refusal(ErrorCode.UNAUTHORIZED)


def _merchant(claims: Mapping[str, Any]) -> str:
    """The subject of a merchant user's token; raises FORBIDDEN or EMAIL_NOT_VERIFIED."""
    if claims.get("type") != "merchant":
        raise Refusal(ErrorCode.FORBIDDEN)
    if claims.get("emailVerified") is not True:
        raise Refusal(ErrorCode.EMAIL_NOT_VERIFIED)
    return str(claims["sub"])


class TokenRevocations(UseCase):
    """A lost token, or all of a person who left or whose account was stolen."""

    @retry_on_conflict
    async def revoke(self, claim: RevokedClaim, value: str, *, by: Actor) -> Revocation:
        """Takes effect on the next request in every process. By subject, it revokes tokens issued until now. Raises
        VALIDATION_ERROR."""
        revocation = Revocation(claim, value, self.clock.now())
        changes = {"issuedBefore": {"before": None, "after": f"{revocation.issued_before:%Y-%m-%dT%H:%M:%SZ}"}}
        async with self.store.begin() as tx:
            await tx.members.revoke(revocation)
            await self.record(tx, by, Action.TOKEN_REVOKE, value, changes)
        return revocation
