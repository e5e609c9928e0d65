"""What upkeep needs: instants that lie ahead of the clock, and sealed values."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol

from payagg.domain.gateway import replaced_context
from payagg.domain.webhook import secret_context


class FutureInstantRepository(Protocol):
    """Instants that the database's clock left behind when it was ahead, of what waits for them."""

    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        """Asks, deliveries and provider events that wait for an instant where no rule can have put it are due `now`,
        and no instant of theirs lies behind that. Looks at the next few hundred asks past `after`, and where that is
        empty at as many of the others; how many there were, and where to go on, None past the end."""


class SealedKind(Enum):
    """What lies sealed at rest; a value is its name in the audit trail."""

    GATEWAY_CREDENTIALS = "gatewayCredentials"
    REPLACED_SECRETS = "replacedSecrets"  # of gateways
    ENDPOINT_CURRENT = "webhookSecrets"
    ENDPOINT_PREVIOUS = "previousWebhookSecrets"

    def context(self, owner_id: str) -> str:
        """What a blob of the gateway or endpoint is bound to in the vault."""
        if self is SealedKind.GATEWAY_CREDENTIALS:
            return owner_id
        return replaced_context(owner_id) if self is SealedKind.REPLACED_SECRETS else secret_context(owner_id)


@dataclass(frozen=True)
class SealedBlob:
    """`owner_id` is the gateway's or the endpoint's, deleted and removed ones included."""

    owner_id: str
    blob: bytes = field(repr=False)


class SealedRepository(Protocol):
    async def page(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        """By owner, strictly after the id `after`."""

    async def replace(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        """False, and nothing is changed, where the owner has another blob than `before` by now, or none."""
