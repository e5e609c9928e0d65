"""The port of a payment provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from payagg.domain.attempt import Charge, HandOff
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
