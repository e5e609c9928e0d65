"""The port of a payment provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Protocol

from payagg.domain.attempt import Charge, HandOff
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment


@dataclass(frozen=True)
class Branding:
    """The name, description and logo of a seeded gateway. `logo` is a PNG, neutral and drawn by us, because we may not
    ship trademarks."""

    name: str
    description: str | None = None
    logo: Path | None = None


@dataclass(frozen=True)
class ProviderEventRoute:
    """One inbound route. `path` follows /webhooks; `unconfigured` is the refusal without credentials, checked before
    the signature."""

    operation_id: str  # the same whatever the slugs are
    slug: str
    environment: Environment
    path: str
    unconfigured: ErrorCode = ErrorCode.INVALID_WEBHOOK_SIGNATURE
    refuses_malformed: bool = False


class Provider(Protocol):
    """One processor's protocol. Raises only ProviderFault; every call is bounded in time and bytes."""

    @property
    def slug(self) -> str: ...

    @property
    def starts_alone(self) -> bool:
        """Whether `start_charge` makes no call, so it is no evidence of the provider's health."""

    @property
    def credential_names(self) -> tuple[str, ...]:
        """The names of the credentials it reads; others are stored and ignored."""

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        """Raises Refusal(VALIDATION_ERROR, field='credentials.<name>') for a key under the wrong environment."""

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool: ...

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool: ...

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        """A fingerprint of the account and address in the credentials; None without an account. Accounts with different
        fingerprints do not have each other's charges."""

    async def start_charge(self, charge: Charge) -> HandOff: ...

    async def fetch_charge(self, charge: Charge) -> ProviderReport: ...

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        """Whether the signature over the raw bytes is right; `headers` has lower-case names. Constant time."""

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        """The one credential that `is_authentic` uses, by its name; empty when there is none."""

    def read_event(self, body: bytes) -> ProviderReport | None:
        """The report in an authentic body, None for events that are not ours; raises ProviderFault(MALFORMED)."""

    def redact_event(self, body: bytes) -> bytes:
        """The part of a body that may be stored: all that `read_event` reads, with an equal result, and nothing of the
        payer, the card or an authorisation to charge it again."""


@dataclass(frozen=True)
class LinePage:
    """Lines of a provider's list or statement. `unreadable`: the positions of the other lines, without their content;
    `total`: the length of the whole list, when given."""

    lines: Sequence[ProviderLine]
    unreadable: Sequence[str] = ()
    total: int | None = None


class ProviderLists(Protocol):
    """A provider's lists. They are reads, so a failed one is repeated a few times."""

    @property
    def kinds(self) -> Sequence[LineKind]:
        """The lists that the provider has."""

    def lines(
        self,
        kind: LineKind,
        since: datetime,
        until: datetime,
        credentials: Mapping[str, str],
        environment: Environment,
    ) -> AsyncIterator[LinePage]:
        """All lines from `since` on and before `until`, a page at a time, at a bounded rate. Raises ProviderFault; each
        call is bounded in time and bytes."""

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        """The lines of a CSV file in the provider's export format, columns by name. Raises VALIDATION_ERROR on
        `file`."""


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
