"""API keys: their form, what is stored and when they are accepted."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from payagg.domain.checks import check_bytes, check_id, check_instant, check_member, check_name, with_changes
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.machine import Machine
from payagg.domain.values import Environment

ACTIVE_KEYS_MAX = 5  # per business and environment; interface, Limits
REVOKED_KEYS_LISTED = 20  # most recent per environment; interface, Limits
NAME_MIN, NAME_MAX = 2, 100  # interface, Limits
SECRET_BYTES = 24
PUBLIC_BYTES = 16
SECRET_PATTERN = f"^ssk_(sand|live)_[0-9a-f]{{{2 * SECRET_BYTES}}}$"
PUBLIC_PATTERN = f"^spk_(sand|live)_[0-9a-f]{{{2 * PUBLIC_BYTES}}}$"
LAST_USED_GRAIN = timedelta(minutes=1)  # lastUsedAt is written at most this often
SECRET_KEY_NOTE = "Store this secret key now: it is shown once and cannot be recovered."
INFIX = {Environment.SANDBOX: "sand", Environment.LIVE: "live"}
_SECRET = re.compile(SECRET_PATTERN.strip("^$"))
_PUBLIC = re.compile(PUBLIC_PATTERN.strip("^$"))
_LAST4 = re.compile(r"[0-9a-f]{4}")


class ApiKeyStatus(Enum):
    ACTIVE = "ACTIVE"
    REVOKED = "REVOKED"


class ApiKeyTrigger(Enum):
    REVOKE = "REVOKE"


API_KEY = Machine(
    name="api_key",
    states=ApiKeyStatus,
    triggers=ApiKeyTrigger,
    initial=ApiKeyStatus.ACTIVE,
    moves={(ApiKeyStatus.ACTIVE, ApiKeyTrigger.REVOKE): ApiKeyStatus.REVOKED},
    refusals={ApiKeyTrigger.REVOKE: ErrorCode.API_KEY_ALREADY_REVOKED},
)


def hash_secret(secret: str) -> bytes:
    """SHA-256 of the whole secret. A plain hash is enough for 192 random bits, and lets equality find the row."""
    return hashlib.sha256(secret.encode()).digest()


class PresentedKey(NamedTuple):
    """The content of a presented secret key, whether or not such a key exists."""

    environment: Environment
    secret_hash: bytes


def parse_secret(text: str) -> PresentedKey:
    """The environment a presented secret selects and its hash; raises INVALID_API_KEY when it has another form."""
    match = _SECRET.fullmatch(text)
    if match is None:
        raise Refusal(ErrorCode.INVALID_API_KEY)
    environment = Environment.SANDBOX if match[1] == "sand" else Environment.LIVE
    return PresentedKey(environment, hash_secret(text))


@dataclass(frozen=True)
class ApiKey:
    """A stored key: never the secret, only its hash and its last four characters.

    Raises VALIDATION_ERROR for what no key can be, with the field's JSON name.
    """

    id: str
    business_id: str
    environment: Environment
    name: str
    public_key: str
    secret_hash: bytes
    secret_last4: str
    status: ApiKeyStatus
    last_used_at: datetime | None
    created_at: datetime
    revoked_at: datetime | None

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        check_id(self.business_id, "businessId")
        check_member(self.environment, "environment", Environment)
        check_name(self.name, NAME_MAX, NAME_MIN)
        if _infix(_PUBLIC, self.public_key) != INFIX[self.environment]:
            raise invalid("publicKey", "Must have the form of its environment's public keys.")
        check_bytes(self.secret_hash, "secretHash", hashlib.sha256().digest_size)
        if not isinstance(self.secret_last4, str) or not _LAST4.fullmatch(self.secret_last4):
            raise invalid("secretLast4", "Must be the secret's last four characters.")
        check_member(self.status, "status", ApiKeyStatus)
        check_instant(self.created_at, "createdAt")
        for instant, field in ((self.last_used_at, "lastUsedAt"), (self.revoked_at, "revokedAt")):
            if instant is not None:
                check_instant(instant, field)
        if (self.status is ApiKeyStatus.REVOKED) is not (self.revoked_at is not None):
            raise invalid("revokedAt", "A key has it when it is revoked, and only then.")

    @classmethod
    def generate(
        cls,
        *,
        id: str,
        business_id: str,
        environment: Environment,
        name: str,
        secret_hex: str,
        public_hex: str,
        now: datetime,
    ) -> tuple["ApiKey", str]:
        """A new ACTIVE key and its raw secret, which exists only in the returned string. Raises as the class does."""
        check_member(environment, "environment", Environment)
        infix = INFIX[environment]
        secret = f"ssk_{infix}_{secret_hex}"
        if not _SECRET.fullmatch(secret):
            raise invalid("secretKey", f"Must have {2 * SECRET_BYTES} lower-case hexadecimal digits.")
        key = cls(
            id=id,
            business_id=business_id,
            environment=environment,
            name=name,
            public_key=f"spk_{infix}_{public_hex}",
            secret_hash=hash_secret(secret),
            secret_last4=secret[-4:],
            status=API_KEY.initial,
            last_used_at=None,
            created_at=now,
            revoked_at=None,
        )
        return key, secret

    @property
    def secret_display(self) -> str:
        return f"ssk_{INFIX[self.environment]}_...{self.secret_last4}"

    def revoke(self, now: datetime) -> "ApiKey":
        """The REVOKED key; raises API_KEY_ALREADY_REVOKED when it is one already."""
        return with_changes(self, status=API_KEY.next(self.status, ApiKeyTrigger.REVOKE), revoked_at=now)

    def ensure_accepted(self) -> None:
        """Raises INVALID_API_KEY for a revoked key: it answers exactly like one that never existed."""
        if self.status is not ApiKeyStatus.ACTIVE:
            raise Refusal(ErrorCode.INVALID_API_KEY)

    def is_use_stale(self, now: datetime) -> bool:
        """Whether `last_used_at` is old enough to be written again."""
        return self.last_used_at is None or now - self.last_used_at >= LAST_USED_GRAIN


def _infix(form: re.Pattern[str], text: object) -> str | None:
    match = form.fullmatch(text) if isinstance(text, str) else None
    return match[1] if match else None
