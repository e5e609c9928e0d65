"""Requests and answers of API keys, for managers; and a key's own context."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from payagg.domain.api_key import NAME_MAX, NAME_MIN, PUBLIC_PATTERN, SECRET_PATTERN, ApiKeyStatus
from payagg.domain.business import KycStatus
from payagg.domain.values import Environment

PublicKey = Annotated[str, Meta(max_length=41, pattern=PUBLIC_PATTERN)]
SecretKey = Annotated[str, Meta(max_length=57, pattern=SECRET_PATTERN)]
MaskedKey = Annotated[str, Meta(max_length=20, pattern=r"^ssk_(sand|live)_\.\.\.[0-9a-f]{4}$")]
KeyName = Annotated[str, Meta(min_length=NAME_MIN, max_length=NAME_MAX, examples=["Production server"])]


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
