"""Ports of the events that providers send."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from payagg.domain.checks import with_changes
from payagg.domain.values import Environment

LONGEST_RETRY = timedelta(hours=1)  # of handling a provider's event


@dataclass(frozen=True)
class ProviderEvent:
    """A provider's event. `digest` is of the raw body, `body` its stored part, emptied in the end. `next_attempt_at`
    None = handled."""

    id: str
    provider: str
    environment: Environment
    digest: bytes
    body: bytes
    received_at: datetime
    attempts: int = 0
    next_attempt_at: datetime | None = None
    handled_at: datetime | None = None
    result: str | None = None

    def handled(self, result: str, now: datetime) -> "ProviderEvent":
        return with_changes(self, next_attempt_at=None, handled_at=now, result=result)


class SignatureFault(Enum):
    """Why an event's signature proved nothing."""

    NO_CREDENTIALS = "NO_CREDENTIALS"
    NO_SIGNATURE = "NO_SIGNATURE"
    OTHER_ENVIRONMENT = "OTHER_ENVIRONMENT"  # right under the other environment's secret
    WRONG_SECRET = "WRONG_SECRET"  # noqa: S105 - a word, not a secret


@dataclass(frozen=True)
class RefusedEvent:
    """An event refused for its signature: enough to notice a wrong secret, and nothing of its content. `slot` bounds
    how many are kept; `headers` are only harmless ones."""

    provider: str
    environment: Environment
    fault: SignatureFault
    slot: int
    path: str
    digest: bytes  # SHA-256 of the body
    size: int  # bytes of the body
    headers: Mapping[str, str]
    received_at: datetime


class ProviderEventRepository(Protocol):
    async def add(self, event: ProviderEvent) -> bool:
        """False when (provider, environment, digest) is already there."""

    async def lock_due(self, now: datetime, limit: int) -> list[ProviderEvent]:
        """Those whose `next_attempt_at` has come, oldest first, locked, skipping locked ones."""

    async def count_due(self, now: datetime, most: int) -> int:
        """The number of due events, counted up to `most`."""

    async def save(self, event: ProviderEvent) -> None: ...

    async def list_refused(self) -> list[RefusedEvent]:
        """Newest first."""

    async def purge_refused(self, before: datetime) -> int:
        """Deletes those received by `before`; how many there were."""

    async def empty(self, before: datetime, limit: int) -> int:
        """Empties the bodies of events handled before then, oldest first; how many."""

    async def remove(self, before: datetime, after: str, limit: int) -> tuple[int, str | None]:
        """Looks at the next `limit` events by id that were received before then and deletes the handled ones; how many,
        and the last id looked at, None past the end."""
