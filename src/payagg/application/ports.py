"""What the use cases need from the world outside the database, as Protocols; the store is in store.py."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from payagg.domain.attempt import Charge, HandOff
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import Gateway
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import ProviderReport
from payagg.domain.values import Environment


class Unavailable(Exception):
    """The database cannot be reached or lost the connection: nothing is known to be wrong with the request."""


class ArchiveUnavailable(Unavailable):
    """The archive's object store cannot be reached."""


class Conflict(Exception):
    """The transaction was rolled back through no fault of the request (serialisation, deadlock, a connection lost
    before COMMIT): doing all of it again is right."""


class ReferenceTaken(Exception):
    """A drawn reference already exists; draw another. Expect about two a day at 100,000 payments a day."""


class StaleKey(Exception):
    """A key or its business no longer stands as remembered; nothing was written."""


class Clock(Protocol):
    def now(self) -> datetime:
        """The present instant in UTC, the same clock for every process (the database's)."""


class Entropy(Protocol):
    """All chance comes from here, from the operating system's generator."""

    def reference(self, now: datetime) -> str:
        """A fresh payment reference for the UTC day of `now`."""

    def id(self, prefix: str, now: datetime) -> str:
        """`<prefix>_` + 12 hex digits of the instant in ms + 20 random ones: unique, and ordered by time."""

    def hex(self, size: int) -> str:
        """`size` random bytes as hex."""

    def bytes(self, size: int) -> bytes: ...

    def chance(self) -> float:
        """A number in [0, 1)."""


class TokenReader(Protocol):
    def read(self, token: str) -> dict[str, Any]:
        """The verified claims, a text `sub` among them; raises UNAUTHORIZED."""


class Vault(Protocol):
    """Encryption at rest (AES-GCM). `context` is bound to the ciphertext: it opens only where it was sealed."""

    def seal(self, plain: bytes, context: str) -> bytes: ...

    def open(self, sealed: bytes, context: str) -> bytes: ...


class KeyedVault(Vault, Protocol):
    """A vault of several keys, one of which seals."""

    @property
    def sealing_key(self) -> str:
        """The id of the key that seals."""

    def key_id(self, sealed: bytes) -> str:
        """The id of the key that a blob says it is sealed under; a word of its own where it is no sealed blob."""


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

    def reduced_event(self, body: bytes) -> bytes:
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


class Images(Protocol):
    async def kind(self, content: bytes) -> str:
        """`png` or `jpg`, told from the content and proved by decoding it; raises VALIDATION_ERROR on `file`."""


class ObjectStore(Protocol):
    """Files by path, each whole or not there. Each call raises Unavailable when the store cannot be reached."""

    async def put(self, path: str, content: bytes) -> None: ...

    async def get(self, path: str) -> bytes | None: ...

    async def delete(self, path: str) -> None: ...


LogoStore = ObjectStore


class ArchiveFile(Protocol):
    """One table's rows, on their way into a file."""

    @property
    def rows(self) -> int: ...

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None: ...

    def finish(self) -> bytes: ...


class ArchiveFormat(Protocol):
    @property
    def suffix(self) -> str:
        """Of the files' names."""

    def file(self, columns: Mapping[str, type]) -> ArchiveFile: ...

    def rows(
        self, content: bytes, columns: Mapping[str, type], reference: str | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """All rows in their order, or those of one payment. Raises ValueError or OSError for a file that is damaged or
        has other columns."""


@dataclass(frozen=True)
class TryResult:
    """What came of one HTTP try to a merchant. `status_code` None = no answer; `error` says why, without secrets."""

    status_code: int | None
    error: str | None
    duration_ms: int
    retry_after: timedelta | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


# Deliveries that end without a try.
SWITCHED_OFF = TryResult(None, "the endpoint is switched off", 0)


UNSIGNED = TryResult(None, "no active endpoint has a secret to sign with", 0)


class Sender(Protocol):
    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str, is_test: bool = False
    ) -> TryResult:
        """One bounded POST: no redirects, checked addresses only. Never raises for what the receiver does. What is
        shared is budgeted by `owner`, a business's id, and for tests apart."""


@dataclass(frozen=True)
class EventAnswer:
    """What the cell that an event was handed on to answered the provider; `code` None = it has the event."""

    code: str | None
    message: str = ""


class OtherCells(Protocol):
    """The cells beside this one. Each call is bounded in time and raises Unavailable when a cell cannot be asked."""

    async def home_gateways(self) -> list[Gateway]:
        """Every gateway of the home cell, deleted ones too."""

    async def home_logo(self, gateway_id: str) -> bytes: ...

    async def hand_on(self, cell: str, path: str, body: bytes, headers: Mapping[str, str]) -> EventAnswer:
        """Gives a provider's event to the cell that it is for, or to where that says that it is now; `path` follows
        /webhooks, `headers` are the provider's."""


# --- storage -----------------------------------------------------------------------------------------------------
