"""Ports of payments, their attempts, provider calls, resolutions and archived histories."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from payagg.domain.anomaly import Anomaly
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business
from payagg.domain.payment import Payment, Transition
from payagg.domain.rate_limit import EPOCH
from payagg.domain.resolution import Resolution
from payagg.domain.values import Environment
from payagg.domain.webhook import Subscriber


@dataclass(frozen=True)
class PaymentAggregate:
    """A payment with its business, and its attempts by number."""

    payment: Payment
    business: Business | None
    attempts: list[Attempt]


@dataclass(frozen=True)
class LockedPayment:
    """A payment with what a status change needs: its attempts by number, the active endpoints of its business and
    environment, and its anomalies, newest first."""

    payment: Payment
    attempts: list[Attempt]
    subscribers: list[Subscriber]
    anomalies: list[Anomaly]


class PaymentRepository(Protocol):
    async def get(self, reference: str) -> Payment | None: ...

    async def lock(self, reference: str) -> Payment | None: ...

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        """The payment is locked first, and the rest read under that lock."""

    async def lock_for_status(self, reference: str) -> LockedPayment | None:
        """As `lock_aggregate`."""

    async def add(self, payment: Payment) -> bool:
        """Adds a payment beside other writes; `Store.add_payment` is the fast path. False when its idempotency key is
        taken. Raises ReferenceTaken."""

    async def save(self, payment: Payment, transition: Transition) -> None:
        """One compare-and-set from the transition's `from_status` and `sequence` - 1, and the transition's row."""

    async def note(self, payment: Payment) -> None:
        """Writes what changes without a transition: fee and net amount, `has_adjustments`, and while the payment is
        open the number of its last event. Call under `lock`."""

    async def transitions(self, reference: str) -> list[Transition]: ...

    async def archived(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None:
        """What is left of a payment whose history is in the archive alone, and which part has it."""


class AttemptRepository(Protocol):
    """Attempts of payments, by `reference` and number."""

    async def of_payment(self, reference: str) -> list[Attempt]:
        """By number. Call under `lock` before deciding on them."""

    async def add(self, attempt: Attempt) -> None: ...

    async def save(self, attempt: Attempt, token: str) -> None:
        """Raises Conflict, at the end of the transaction at the latest, unless the stored token is still `token`; it
        changes under the payment's `lock` alone."""

    async def due_checks(
        self,
        gateway: str,
        environment: Environment,
        now: datetime,
        limit: int,
        hold: timedelta,
        since: datetime = EPOCH,
    ) -> list[Attempt]:
        """Attempts at one gateway's slug and environment whose `next_ask_at` has come, oldest first, leased until now +
        hold so other workers skip them. Saving an attempt ends its lease. When more are due than `limit`, businesses
        take turns.

        Also those in flight at `since`: their first check would come within FIRST_CHECK_MAX of it, and nobody has
        checked or leased them since.
        """

    async def hasten_checks(self, gateway: str, environment: Environment, now: datetime) -> int:
        """Makes a batch of later checks due now, except those of charges confirmed longer than HASTEN_PAID ago; how
        many, 0 when none is left."""

    async def oldest_check(self, now: datetime) -> datetime | None:
        """The earliest `next_ask_at`, at any gateway, that is past `now`."""

    async def count_open(self, gateway_id: str, most: int, other_than: Collection[str] = ()) -> int:
        """The gateway's open attempts, counted up to `most`: `next_ask_at` is set, and none is confirmed. With
        `other_than`: only those made with another known account."""


class ProviderCallRepository(Protocol):
    """Calls to providers, with their results."""

    async def add(self, call: "ProviderCall") -> None: ...

    async def of_payment(self, reference: str) -> list["ProviderCall"]: ...

    async def last_answer(self, reference: str) -> "ProviderCall | None":
        """The last look-up of the payment that got an answer, with the provider's status."""


@dataclass(frozen=True)
class ProviderCall:
    """One call to a provider, for `explain`: `result` is an Outcome, a HandOffKind or a FaultKind."""

    id: str
    reference: str
    attempt: int
    gateway: str
    operation: str
    result: str
    word: str | None
    duration_ms: int
    actor: str
    at: datetime


class ResolutionRepository(Protocol):
    """Requests to end a payment by hand. Call every method but `of_payment` under the payment's lock."""

    async def add(self, resolution: Resolution) -> None: ...

    async def latest(self, reference: str) -> Resolution | None: ...

    async def of_payment(self, reference: str) -> list[Resolution]:
        """Oldest first, at most 100."""

    async def confirm(self, resolution: Resolution) -> None:
        """Records who confirmed it and when, once."""


class ArchiveDamaged(Exception):
    """A file of the archive is missing, or is not what its manifest says."""


class ArchivedHistories(Protocol):
    async def read(
        self, part: ArchivePart, reference: str
    ) -> tuple[list[Transition], list[Attempt], list[ProviderCall]]:
        """Of one payment. Raises ArchiveDamaged, Unavailable."""
