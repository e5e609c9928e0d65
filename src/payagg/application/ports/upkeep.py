"""Ports of upkeep: instants ahead of the clock, and sealed values."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol

from payagg.domain.gateway import replaced_context
from payagg.domain.webhook import secret_context


class FutureInstantRepository(Protocol):
    """Due instants written while the database's clock was ahead."""

    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        """Makes checks, deliveries and provider events due `now` whose instant no rule can have set, and frees the
        days that were reconciled then. Looks at the next few hundred checks after `after`, and when that is empty also
        at as many deliveries and events, and at the claims of days; returns how many changed, and where to continue,
        None past the end."""


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


class SealedRepository(Protocol):
    async def page(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        """By owner, strictly after the id `after`."""

    async def replace(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        """False, and nothing changes, when the owner's blob is no longer `before`."""
