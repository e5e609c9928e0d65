"""What use cases need of a payment provider."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from payagg.domain.attempt import Charge, HandOff
from payagg.domain.errors import ErrorCode
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment


@dataclass(frozen=True)
class Look:
    """What a seeded gateway shows from the start; `logo` draws a PNG."""

    name: str
    description: str | None = None
    logo: Callable[[], bytes] | None = None


@dataclass(frozen=True)
class ProviderEventRoute:
    """One receiving address. `path` follows /webhooks; `unconfigured` is the answer without credentials, looked at
    before the signature."""

    operation_id: str  # the same whatever the slugs are
    slug: str
    environment: Environment
    path: str
    unconfigured: ErrorCode = ErrorCode.INVALID_WEBHOOK_SIGNATURE
    refuses_malformed: bool = False


class Provider(Protocol):
    """One processor's protocol. Raises ProviderFault alone; every call is bounded in time and bytes."""

    @property
    def slug(self) -> str: ...

    @property
    def starts_alone(self) -> bool:
        """Whether `start_charge` calls nobody, so that it says nothing about the provider's health."""

    @property
    def credential_names(self) -> tuple[str, ...]:
        """The names that it reads of the credentials; others are kept and not looked at."""

    def check_credentials(self, credentials: Mapping[str, str]) -> None:
        """Raises Refusal(VALIDATION_ERROR, field='credentials.<name>') for a key under the wrong environment."""

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool: ...

    def is_switched_on(self, credentials: Mapping[str, str], environment: Environment) -> bool: ...

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        """A fingerprint of the account and the address that the credentials name; None where there is none. Two that
        differ may both be right, but neither has the other's charges."""

    async def start_charge(self, charge: Charge) -> HandOff: ...

    async def fetch_charge(self, charge: Charge) -> ProviderReport: ...

    def is_authentic(
        self, body: bytes, headers: Mapping[str, str], credentials: Mapping[str, str], environment: Environment
    ) -> bool:
        """Whether the signature over the raw bytes is right; `headers` has lower-case names. Constant time."""

    def signing_secret(self, credentials: Mapping[str, str], environment: Environment) -> Mapping[str, str]:
        """The one credential that `is_authentic` goes by, under a name it reads; empty when there is none."""

    def read_event(self, body: bytes) -> ProviderReport | None:
        """The report in an authentic body, None for events that are not ours; raises ProviderFault(MALFORMED)."""

    def redact_event(self, body: bytes) -> bytes:
        """What of a body may be kept: all that `read_event` reads, which comes to the same of both, and nothing of the
        payer, the card or an authorisation to charge it again."""


@dataclass(frozen=True)
class LinePage:
    """Lines of a provider's list or statement. `unreadable` says where each of the others stood, and nothing of what
    was in it; `total` how many the whole list has, where it says so."""

    lines: Sequence[ProviderLine]
    unreadable: Sequence[str] = ()
    total: int | None = None


class ProviderLists(Protocol):
    """What a provider can be asked for at once. Reads alone, so a failed one is asked again a few times."""

    @property
    def kinds(self) -> Sequence[LineKind]:
        """The lists that it has."""

    def lines(
        self,
        kind: LineKind,
        since: datetime,
        until: datetime,
        credentials: Mapping[str, str],
        environment: Environment,
    ) -> AsyncIterator[LinePage]:
        """All lines from `since` on and before `until`, a page at a time and at most so many requests a second. Raises
        ProviderFault; each call is bounded in time and bytes."""

    def read_statement(self, content: bytes, environment: Environment) -> LinePage:
        """The lines of a CSV file as the provider exports it, columns by name. Raises VALIDATION_ERROR on `file`."""
