"""The port of upkeep."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol

from payagg.domain.gateway import replaced_context
from payagg.domain.payment import Payment
from payagg.domain.webhook import secret_context


class SealedKind(Enum):
    """Kinds of data sealed at rest; a value is its name in the audit trail."""

    GATEWAY_CREDENTIALS = "gatewayCredentials"
    REPLACED_SECRETS = "replacedSecrets"  # of gateways
    ENDPOINT_CURRENT = "webhookSecrets"
    ENDPOINT_PREVIOUS = "previousWebhookSecrets"

    def context(self, owner_id: str) -> str:
        """The vault's context for a blob of this gateway or endpoint."""
        if self is SealedKind.GATEWAY_CREDENTIALS:
            return owner_id
        return replaced_context(owner_id) if self is SealedKind.REPLACED_SECRETS else secret_context(owner_id)


@dataclass(frozen=True)
class SealedBlob:
    """`owner_id` is the gateway's or endpoint's id, deleted and removed ones included."""

    owner_id: str
    blob: bytes = field(repr=False)


class UpkeepRepository(Protocol):
    """What sweeps and commands of operators need: payments to expire, payers to erase, instants that a clock dated
    ahead, and what is sealed."""

    async def lock_expired(self, now: datetime, limit: int) -> list[Payment]:
        """INITIATED payments past their window, oldest first, locked, skipping locked ones."""

    async def list_initiated(self, until: datetime, reference: str, limit: int) -> list[Payment]:
        """INITIATED payments by `expires_at`, then reference, after the given two."""

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        """References of final payments that ended before then and still have a payer field, oldest days first, locked,
        skipping locked ones."""

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        """Of the next `limit` references in order: those whose payer has this address, in any letter case, and the last
        one looked at, None past the end."""

    async def clear_payer(self, references: Sequence[str]) -> None:
        """Clears the payer's fields, the request's digest, and the hand-offs that hold them."""

    async def forget_keys(self, before: datetime, limit: int) -> int:
        """Frees the idempotency keys of final payments that ended before then, oldest days first; how many. Each
        payment stays, and keeps its key as a field."""

    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        """Makes checks, deliveries and provider events due `now` that the database's clock dated ahead, and frees the
        days that were reconciled then. Looks at the next few hundred checks after `after`, and when that is empty also
        at as many deliveries and events, and at the claims of days; returns how many changed, and where to continue,
        None past the end."""

    async def sealed_blobs(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        """By owner, strictly after the id `after`."""

    async def reseal(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        """False, and nothing changes, when the owner's blob is no longer `before`."""
