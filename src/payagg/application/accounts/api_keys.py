"""API keys of a business: generate, list, revoke. The raw secret exists only in the answer to generate."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.accounts.businesses import lock_own
from payagg.application.ports.accounts import KeyHolder
from payagg.application.schemas.views import view_of
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.api_key import (
    ACTIVE_KEYS_MAX,
    NAME_MAX,
    NAME_MIN,
    PUBLIC_BYTES,
    PUBLIC_PATTERN,
    REVOKED_KEYS_LISTED,
    SECRET_BYTES,
    SECRET_KEY_NOTE,
    SECRET_PATTERN,
    ApiKey,
    ApiKeyStatus,
)
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.business import KycStatus
from payagg.domain.errors import ErrorCode, Refusal, must_exist
from payagg.domain.values import Environment

PublicKey = Annotated[str, Meta(max_length=41, pattern=PUBLIC_PATTERN)]
SecretKey = Annotated[str, Meta(max_length=57, pattern=SECRET_PATTERN)]
MaskedKey = Annotated[str, Meta(max_length=20, pattern=r"^ssk_(sand|live)_\.\.\.[0-9a-f]{4}$")]
KeyName = Annotated[
    str,
    Meta(
        min_length=NAME_MIN, max_length=NAME_MAX, extra_json_schema={"pattern": r"\S"}, examples=["Production server"]
    ),
]


class GenerateApiKey(Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    environment: Environment
    name: KeyName


class GeneratedApiKey(Struct, rename="camel", frozen=True):
    """The only answer that carries a raw secret."""

    id: str
    name: str
    public_key: PublicKey
    secret_key: SecretKey
    environment: Environment
    created_at: datetime
    secret_key_note: str

    def __repr__(self) -> str:
        return f"GeneratedApiKey(id={self.id!r})"


class ApiKeyRecord(Struct, rename="camel", frozen=True):
    id: str
    name: str
    public_key: PublicKey
    secret_key_display: MaskedKey
    status: ApiKeyStatus
    last_used_at: datetime | None
    created_at: datetime
    revoked_at: datetime | None


class BusinessApiKeyGroups(Struct, rename="camel", frozen=True):
    sandbox: list[ApiKeyRecord]
    live: list[ApiKeyRecord]


class ApiKeyContext(Struct, rename="camel", frozen=True):
    """The business and environment of a secret key."""

    business_id: str
    business_name: str
    environment: Environment
    kyc_status: KycStatus


class ApiKeys(UseCase):
    @retry_on_conflict
    async def generate(self, business_id: str, command: GenerateApiKey, *, by: Actor) -> GeneratedApiKey:
        """Raises BUSINESS_RESTRICTED, KYC_REQUIRED for LIVE before approval, KEY_LIMIT_REACHED at five active keys."""
        async with self.store.begin() as tx:
            (await lock_own(tx, business_id, by)).ensure_may_use(command.environment)
            if await tx.api_keys.count_active(business_id, command.environment) >= ACTIVE_KEYS_MAX:
                raise Refusal(ErrorCode.KEY_LIMIT_REACHED)
            now = self.clock.now()
            key, secret = ApiKey.generate(
                id=self.entropy.id("key", now),
                business_id=business_id,
                environment=command.environment,
                name=command.name,
                secret_hex=self.entropy.hex(SECRET_BYTES),
                public_hex=self.entropy.hex(PUBLIC_BYTES),
                now=now,
            )
            await tx.api_keys.add(key)
            changes = changes_of(None, key, "name", "environment", "public_key", "status")
            await self.record(tx, by, Action.API_KEY_CREATE, key.id, changes, business_id=business_id)
        return view_of(GeneratedApiKey, key, secret_key=secret, secret_key_note=SECRET_KEY_NOTE)

    async def groups(self, business_id: str) -> BusinessApiKeyGroups:
        """All active keys and the most recently revoked ones, per environment."""
        keys = await in_transaction(self.store, lambda tx: tx.api_keys.list_keys(business_id, REVOKED_KEYS_LISTED))
        sandbox, live = ([_record(key) for key in keys if key.environment is one] for one in Environment)
        return BusinessApiKeyGroups(sandbox, live)

    @retry_on_conflict
    async def revoke(self, business_id: str, key_id: str, *, by: Actor) -> None:
        """Permanent, and works whatever the business's status; raises NOT_FOUND or API_KEY_ALREADY_REVOKED."""
        async with self.store.begin() as tx:
            key = must_exist(await tx.api_keys.get(business_id, key_id))
            now = self.clock.now()
            revoked = key.revoke(now)
            await tx.api_keys.save(revoked)
            changes = changes_of(key, revoked, "status")
            await self.record(tx, by, Action.API_KEY_REVOKE, key_id, changes, business_id=business_id)


def context_of(holder: KeyHolder) -> ApiKeyContext:
    return ApiKeyContext(holder.business.id, holder.business.name, holder.key.environment, holder.business.kyc_status)


def _record(key: ApiKey) -> ApiKeyRecord:
    return view_of(ApiKeyRecord, key, secret_key_display=key.secret_display)
