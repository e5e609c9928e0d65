"""What the use cases ask of each kind of row, within one transaction of the store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Protocol

from payagg.domain.adjustment import Adjustment, AdjustmentTotal
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus, Severity, severity_of
from payagg.domain.api_key import ApiKey
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import Attempt
from payagg.domain.audit import AuditEntry, AuditFilter
from payagg.domain.business import Business, Role
from payagg.domain.cell_move import BusinessMove, Signpost
from payagg.domain.gateway import BusinessGateway, Gateway, replaced_context
from payagg.domain.health import Health
from payagg.domain.payment import Payment, Transition
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.rate_limit import EPOCH
from payagg.domain.reconciliation import OurPayment, ReconciliationFinding, ReconciliationRun
from payagg.domain.resolution import Resolution
from payagg.domain.revocation import Revocation
from payagg.domain.values import CLOCK_SLACK, Environment
from payagg.domain.webhook import Delivery, Event, WebhookEndpoint, secret_context


class BusinessRepository(Protocol):
    async def get(self, business_id: str) -> Business | None: ...

    async def lock(self, business_id: str) -> Business | None:
        """The business, its row locked: limits of five are counted under it."""

    async def names(self, business_ids: Collection[str]) -> dict[str, str]:
        """The name of each business that there is, by its id."""

    async def role(self, business_id: str, subject: str) -> Role | None: ...

    async def managed_by(self, subject: str) -> list[tuple[Business, Role]]:
        """The businesses in which the subject is OWNER or ADMIN, oldest first, at most 1,000."""

    async def add(self, business: Business) -> None: ...

    async def save(self, business: Business) -> None: ...

    async def count(self) -> int:
        """How many there are, whatever their status."""

    async def listed(self, search: str | None, after: str | None, limit: int) -> list[Business]:
        """By id, newest first (an id begins with its instant), strictly older than the id `after`; `search` is a
        literal, case-insensitive substring of the name."""

    async def members(self, business_id: str) -> dict[str, Role]:
        """The role of each subject, by subject in code point order."""

    async def set_member(self, business_id: str, subject: str, role: Role) -> None: ...

    async def remove_member(self, business_id: str, subject: str) -> None: ...


class ApiKeyRepository(Protocol):
    async def get(self, business_id: str, key_id: str) -> ApiKey | None:
        """Locked for update."""

    async def listed(self, business_id: str, environment: Environment, revoked_max: int) -> list[ApiKey]:
        """Active keys, newest first, then the most recently revoked ones, at most `revoked_max`."""

    async def count_active(self, business_id: str, environment: Environment) -> int: ...

    async def add(self, key: ApiKey) -> None: ...

    async def save(self, key: ApiKey) -> None: ...


@dataclass(frozen=True)
class GatewayMerchant:
    """One row of an administrator's list of a gateway's merchants."""

    business: Business
    settings: BusinessGateway | None


@dataclass(frozen=True)
class GatewayChoices:
    """What a business can offer its payers: every gateway by display order, its own settings by gateway id, and the
    health of providers."""

    gateways: list[Gateway]
    settings: dict[str, BusinessGateway]
    health: list[Health]


class GatewayRepository(Protocol):
    """Reads return gateways as stored; callers apply `as_of(now)`. DELETED ones are returned where it says so alone."""

    async def all(self) -> list[Gateway]:
        """By display order, then slug."""

    async def choices(self, business_id: str) -> GatewayChoices: ...

    async def get(self, gateway_id: str) -> Gateway | None: ...

    async def lock(self, gateway_id: str) -> Gateway | None: ...

    async def by_slug(self, slug: str) -> Gateway | None: ...

    async def get_any(self, gateway_id: str) -> Gateway | None:
        """A DELETED one too: payments that were handed to it are still settled through it."""

    async def everything(self) -> list[Gateway]:
        """DELETED ones too, by id. For copies in other cells."""

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones): DELETED ones that have credentials on file, and any whose replaced
        secrets have ended by `now`. At most 100."""

    async def add(self, gateway: Gateway) -> bool:
        """False when the slug is taken."""

    async def save(self, gateway: Gateway) -> None: ...

    async def draining(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones) whose drain has ended by `now`."""

    async def active_businesses(self) -> int: ...

    async def opt_outs(self, gateway_id: str | None = None) -> dict[str, int]:
        """Per gateway id: how many active businesses turned it off."""

    async def overrides(self, gateway_id: str) -> list[GatewayMerchant]:
        """Businesses that turned it off, by name."""

    async def merchants(
        self, gateway_id: str, search: str | None, offset: int, limit: int
    ) -> tuple[list[GatewayMerchant], int]:
        """A page of active businesses (literal, case-insensitive substring of the name) and the total."""

    async def settings(self, business_id: str) -> dict[str, BusinessGateway]:
        """By gateway id."""

    async def save_settings(self, settings: BusinessGateway) -> None:
        """Insert or replace. When it is the default, every other default of the business is cleared first."""


@dataclass(frozen=True)
class PaymentAggregate:
    """A payment with what decides on it: its business, and its attempts by number."""

    payment: Payment
    business: Business | None
    attempts: list[Attempt]


@dataclass(frozen=True)
class PaymentToSettle:
    """A payment with what a change of its status needs: its attempts by number, the active endpoints of its business
    and environment, and its anomalies, newest first."""

    payment: Payment
    attempts: list[Attempt]
    subscribers: list[WebhookEndpoint]
    anomalies: list[Anomaly]


class PaymentRepository(Protocol):
    async def get(self, reference: str) -> Payment | None: ...

    async def lock(self, reference: str) -> Payment | None: ...

    async def aggregate(self, reference: str) -> PaymentAggregate | None: ...

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        """The payment is locked first, and the rest read under that lock."""

    async def lock_to_settle(self, reference: str) -> PaymentToSettle | None:
        """As `lock_aggregate`."""

    async def add(self, payment: Payment) -> bool:
        """A new payment beside other writes; `Store.add_payment` is the quick way. False when its idempotency key is
        taken. Raises ReferenceTaken."""

    async def save(self, payment: Payment, transition: Transition) -> None:
        """One compare-and-set from the transition's `from_status` and `sequence` - 1, and the transition's row."""

    async def note(self, payment: Payment) -> None:
        """Writes what may be added to a payment that does not move: its fee and net amount, `has_adjustments`, and
        while it is open the number of its last event. Call under `lock`."""

    async def expired(self, now: datetime, limit: int) -> list[Payment]:
        """INITIATED payments past their window, oldest first, locked, skipping what others hold."""

    async def initiated(self, until: datetime, reference: str, limit: int) -> list[Payment]:
        """INITIATED payments in the order of their windows' ends, then references, past the given two."""

    async def attempts(self, reference: str) -> list[Attempt]:
        """By number. Call under `lock` before deciding on them."""

    async def add_attempt(self, attempt: Attempt) -> None: ...

    async def save_attempt(self, attempt: Attempt, token: str) -> None:
        """Raises Conflict, at the end of the transaction at the latest, unless the stored token is still `token`; it
        changes under the payment's `lock` alone."""

    async def due_asks(
        self,
        gateway: str,
        environment: Environment,
        now: datetime,
        limit: int,
        hold: timedelta,
        since: datetime = EPOCH,
    ) -> list[Attempt]:
        """Attempts at one gateway's slug and environment whose `next_ask_at` has come, oldest first, held until
        now + hold so that other workers skip them. Saving an attempt ends its hold. Where more are due than `limit`,
        businesses take turns.

        And those that were in the air at `since`: their first ask would come within FIRST_ASK_MAX of it, and nobody has
        asked about them or held them since."""

    async def hasten_asks(self, gateway: str, environment: Environment, now: datetime) -> int:
        """Makes a batch of asks of a later time due now, but not those about charges that were confirmed longer than
        HASTEN_PAID ago; how many, 0 when there are none left."""

    async def end_asks(self, reference: str) -> None:
        """No attempt of the payment is asked about any more. Call under `lock`."""

    async def oldest_ask(self, gateways: Collection[str], now: datetime) -> datetime | None:
        """The earliest `next_ask_at` at these gateways that has passed by `now`."""

    async def has_open_attempts(self, gateway_id: str) -> bool:
        """Whether any attempt of the gateway is still to be asked about what became of it: its `next_ask_at` is set,
        and it was not confirmed."""

    async def open_attempts(self, gateway_id: str, most: int, other_than: Collection[str] = ()) -> int:
        """How many of them there are, counted up to `most`; without those of the accounts `other_than`, where any are
        given, and then without those of which no account is known."""

    async def transitions(self, reference: str) -> list[Transition]: ...

    async def add_call(self, call: "ProviderCall") -> None: ...

    async def calls(self, reference: str) -> list["ProviderCall"]: ...

    async def last_answer(self, reference: str) -> "ProviderCall | None":
        """The last look-up of the payment that the provider answered, with its word."""

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        """References of final payments that ended before then and still have a payer field, oldest first, locked,
        skipping what others hold."""

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        """Of the next `limit` references in order: those whose payer has this address, in any letter case, and the last
        one looked at, None past the end."""

    async def clear_payer(self, references: Sequence[str]) -> None:
        """Clears the payer's fields, the digest of the request that gave them, and the hand-offs that carry them."""

    async def forget_keys(self, before: datetime, limit: int) -> int:
        """Frees the idempotency keys of final payments that ended before then, those of the oldest days first; how
        many. Each payment stays, and still says which key it came with."""


class PaymentSearchRepository(Protocol):
    """Payments by what they have in common. A filter by idempotency key needs the business too."""

    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> list[Payment]:
        """Newest first, strictly after the cursor, as stored; `now` decides what has expired. None is shown while a
        transaction that may still commit an earlier one is open, so a cursor never passes a payment by; what is looked
        up by reference or idempotency key is shown at once."""

    async def totals(self, wanted: PaymentFilter, now: datetime) -> list[PaymentTotal]:
        """By day, then status in the machine's order, for a filter by business, environment, status and time alone;
        reads the entry of every payment that is counted."""


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


@dataclass(frozen=True)
class AnomalyFilter:
    """None lets any through. `after` is the id of the last one of the page before."""

    status: AnomalyStatus | None = None
    kind: AnomalyKind | None = None
    reference: str | None = None
    after: str | None = None
    severity: Severity | None = None
    assignee: str | None = None

    @property
    def kinds(self) -> tuple[AnomalyKind, ...] | None:
        """Those that `kind` and `severity` let through; None = all."""
        if self.severity is None:
            return None if self.kind is None else (self.kind,)
        of_severity = [kind for kind in AnomalyKind if severity_of(kind) is self.severity]
        return tuple(kind for kind in of_severity if self.kind in (None, kind))


@dataclass(frozen=True)
class AdjustmentFilter:
    """`after` is the id of the last one of the page before."""

    business_id: str
    environment: Environment
    needs_attention: bool = False  # only those that do
    after: str | None = None


class AnomalyRepository(Protocol):
    async def add(self, anomaly: Anomaly) -> None: ...

    async def last_id(self) -> str | None:
        """The greatest id."""

    async def of_payment(self, reference: str) -> list[Anomaly]:
        """Newest first, at most 1,000."""

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        """Of each payment as `of_payment`."""

    async def adjustments(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        """Those an event told, newest first by the latest fact of each."""

    async def adjustment_totals(self, wanted: PaymentFilter) -> list[AdjustmentTotal]:
        """The same added up by day and kind, in this order; `wanted` says whose, of which environment and of what time,
        which is the adjustments' own."""

    async def lock(self, anomaly_id: str) -> Anomaly | None: ...

    async def save(self, anomaly: Anomaly) -> None:
        """Only what people do about it; the fact itself cannot change."""

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        """Writes the number of the event that told the merchant, once. Call under the payment's lock."""

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        """Newest first: ids are ordered by time."""

    async def unclosed(self) -> dict[AnomalyKind, int]:
        """How many of each kind are not closed."""


class ReconciliationRepository(Protocol):
    """Runs, their findings, and what of our payments they compare."""

    async def add(self, run: ReconciliationRun) -> None: ...

    async def claim(self, run: ReconciliationRun, stale: datetime) -> str | None:
        """Adds the run and returns its id, unless its `claim` is taken: then that run begins anew and its id is
        returned where it has not ended and began before `stale`, and None otherwise."""

    async def get(self, run_id: str) -> ReconciliationRun | None: ...

    async def end(self, run: ReconciliationRun, findings: Sequence[ReconciliationFinding]) -> None:
        """Its end and totals, once, and all that it found."""

    async def page(self, after: str | None, limit: int) -> list[ReconciliationRun]:
        """Newest first, strictly older than the id `after`."""

    async def findings(self, run_id: str, after: int, limit: int) -> list[ReconciliationFinding]:
        """By number, past `after`."""

    async def handed_off(
        self, gateway: str, environment: Environment, since: datetime, until: datetime, after: str, limit: int
    ) -> list[tuple[datetime, OurPayment]]:
        """Payments whose payer was sent to the gateway from `since` on and before `until`, with that instant, in the
        order of both; of those sent at `since` itself the ones past the reference `after`."""

    async def of_gateway(self, gateway: str, environment: Environment, references: Collection[str]) -> list[OurPayment]:
        """Those of these references that are payments of the gateway."""

    async def unknown(self, provider_references: Collection[str]) -> list[Anomaly]:
        """Anomalies without a payment that tell of these."""


class ResolutionRepository(Protocol):
    """Requests to end a payment by hand. Call each under the payment's lock but `of_payment`."""

    async def add(self, resolution: Resolution) -> None: ...

    async def latest(self, reference: str) -> Resolution | None: ...

    async def of_payment(self, reference: str) -> list[Resolution]:
        """Oldest first, at most 100."""

    async def confirm(self, resolution: Resolution) -> None:
        """Writes who confirmed it and when, once."""


class HealthRepository(Protocol):
    async def all(self) -> list[Health]: ...

    async def lock(self, gateway: str, environment: Environment) -> Health:
        """The row, locked, made when absent."""

    async def save(self, health: Health) -> None: ...


LONGEST_RETRY = timedelta(hours=1)  # of handling a provider's event


@dataclass(frozen=True)
class ProviderEvent:
    """A provider's event. `digest` is of the body as it came, `body` what was kept of that: empty in the end.
    `next_attempt_at` None = handled."""

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

    def is_dated_ahead(self, now: datetime) -> bool:
        """Whether it waits for an instant where a clock that was ahead has put it."""
        last = now + CLOCK_SLACK
        due = self.next_attempt_at
        return due is not None and due > last and (self.received_at > last or due > last + LONGEST_RETRY)


class SignatureFault(Enum):
    """Why an event's signature proved nothing."""

    NO_CREDENTIALS = "NO_CREDENTIALS"
    NO_SIGNATURE = "NO_SIGNATURE"
    OTHER_ENVIRONMENT = "OTHER_ENVIRONMENT"  # right for the other environment's secret
    WRONG_SECRET = "WRONG_SECRET"  # noqa: S105 - a word, not a secret


@dataclass(frozen=True)
class RefusedEvent:
    """An event that was refused for its signature: enough to notice a wrong secret and nothing that it held. `slot`
    bounds how many are kept; `headers` are harmless ones alone."""

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
        """Those whose `next_attempt_at` has come, oldest first, locked, skipping what others hold."""

    async def count_due(self, now: datetime, most: int) -> int:
        """How many of those there are, counted up to `most`."""

    async def save(self, event: ProviderEvent) -> None: ...

    async def refused(self) -> list[RefusedEvent]:
        """Newest first."""

    async def purge_refused(self, before: datetime) -> int:
        """Deletes those received by `before`; how many there were."""

    async def empty(self, before: datetime, limit: int) -> int:
        """Empties the bodies of events handled before then, oldest first; how many."""

    async def remove(self, before: datetime, after: str, limit: int) -> tuple[int, str | None]:
        """Of the next `limit` events in the order of their ids that were received before then, deletes those that are
        handled; how many, and the last id looked at, None past the end."""


class FutureInstantRepository(Protocol):
    """Instants that the database's clock left behind when it was ahead, of what waits for them."""

    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        """Asks, deliveries and provider events that wait for an instant where no rule can have put it are due `now`,
        and no instant of theirs lies behind that. Looks at the next few hundred asks past `after`, and where that is
        empty at as many of the others; how many there were, and where to go on, None past the end."""


class WebhookRepository(Protocol):
    """Endpoints, events and deliveries. A delivery row is written with the status change that caused it."""

    async def endpoints(self, business_id: str) -> list[WebhookEndpoint]:
        """Of both environments, oldest first."""

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[WebhookEndpoint]]:
        """Active endpoints of each business and environment, oldest first; nothing for one that has none."""

    async def subscribers(self, business_id: str, environment: Environment) -> list[WebhookEndpoint]:
        """Active endpoints of that environment."""

    async def endpoint(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        """Locked for update."""

    async def find_endpoint(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        """Not locked: for reads, which must not wait for the queue's counters."""

    async def add_endpoint(self, endpoint: WebhookEndpoint) -> None: ...

    async def save_endpoint(self, endpoint: WebhookEndpoint) -> None:
        """Everything but the counters and `failing_since`, which the queue moves; activation and a new address
        clear the latter."""

    async def remove_endpoint(self, endpoint_id: str, now: datetime) -> None:
        """Switched off, and shown by nothing here any more; it goes with the last of its log. What is still to be
        delivered ends as it does where an endpoint is switched off."""

    async def last_event_id(self, business_id: str, environment: Environment) -> str | None:
        """The greatest id of the business's events there. Call under the lock of the payment that the next one tells
        of: no event that a cursor may stand at already is missed then."""

    async def emit(self, event: Event, deliveries: Sequence[Delivery]) -> None: ...

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        """A page, newest first, and the total from counters. Strictly older than the id `after` where it is given;
        what stands before the offset costs time, what stands before `after` does not."""

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        """Locked for update. Lock its endpoint first, as the queue does."""

    async def own_delivery(self, reference: str, delivery_id: str) -> Delivery | None:
        """One to the payment's own address, locked for update."""

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        """PENDING again and due now, under the same ids; counters follow."""

    async def events(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        """Past events in the order of their ids, strictly after the cursor. None is shown while a transaction that
        may still commit an earlier one is open, so a cursor never passes an event by."""

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]: ...

    async def events_of(self, references: Sequence[str]) -> list[Event]:
        """The events of these payments, locked."""

    async def save_bodies(self, events: Sequence[Event]) -> None: ...


class ArchiveRepository(Protocol):
    """What is archived of payments: their transitions, attempts and provider calls."""

    async def next_with_history(self, after: str) -> str | None:
        """The first reference behind `after` whose history is still here."""

    async def ready(self, after: str, until: str, before: datetime, limit: int) -> tuple[list[str], str | None]:
        """Of the next `limit` payments with a history here, behind `after` and up to `until` by their references: those
        that may be archived; and the last one looked at, None past the end. May be archived: final, made before that
        instant, with no event and no delivery left, no open anomaly, and nobody to be asked about it."""

    async def lock_ready(self, references: Sequence[str]) -> list[str]:
        """Which of them may be archived, in their order, locked."""

    async def histories(self, references: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
        """Their rows by table as in `archive_tables.TABLES`, sorted by reference and what follows it in the key."""

    async def begin_part(self, day: str, folder: str, now: datetime) -> ArchivePart: ...

    async def finish_part(self, part: ArchivePart) -> None:
        """Records that the part is written. Raises Conflict when it was given up."""

    async def give_up_part(self, number: int) -> None:
        """Forgets a part that is not written."""

    async def parts(self, day: str) -> list[ArchivePart]:
        """Those of the day that are not removed from here, by number."""

    async def unfinished_days(self) -> list[str]:
        """Days of which some part is not removed from here, in order."""

    async def close_part(self, number: int, now: datetime) -> None:
        """All that may be removed of it is."""

    async def move(self, payments: Sequence[ArchivedPayment], calls: Sequence[tuple[str, str]]) -> None:
        """Removes the transitions and attempts of these locked payments, and these calls (reference, id)."""

    async def archived(self, references: Sequence[str]) -> set[str]:
        """Which of them are archived and removed."""

    async def find(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None: ...


class AuditRepository(Protocol):
    """Entries are added and read; the store refuses to change or delete one."""

    async def add(self, entry: AuditEntry) -> None: ...

    async def listed(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        """By id, newest first, strictly older than the id `after`."""


class RevocationRepository(Protocol):
    async def add(self, revocation: Revocation) -> None:
        """One for the same claim and value keeps the later of both instants."""

    async def end_session(self, session: bytes, ends_at: datetime, now: datetime) -> None:
        """A console session is over, by its digest. Forgets some of those that would have ended by `now`."""


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


class CellMoveRepository(Protocol):
    """What of a business is here, on its way to another cell, or gone. What is on its way is `rows`: as one store wrote
    them, and as one of the same kind and schema reads them."""

    async def of_business(self, business_id: str) -> BusinessMove | None: ...

    async def signpost_of_payment(self, reference: str) -> Signpost | None: ...

    async def signpost_of_key(self, secret_hash: bytes) -> Signpost | None: ...

    async def schema(self) -> str:
        """The name of the schema; `rows` go between equal ones alone."""

    async def database(self) -> str:
        """A word that no other database has, and this one until its server starts anew."""

    async def gateways_in_use(self, business_id: str) -> set[str]:
        """The ids of those that the business has settings of, or charges at that are still to be asked about."""

    async def sealed(self, business_id: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Signing secrets of endpoints, of one business or of any, each with its context in the vault."""

    # Of the cell that the business leaves.

    async def close(self, business_id: str, cell: str, at: datetime) -> bool:
        """Its keys and members are on their way, and nothing of it changes any more but its payments; False where there
        is no such business, or it was closed before."""

    async def open_transactions(self) -> frozenset[str]:
        """A name for each transaction that may have begun before now and may still write."""

    async def profile(self, business_id: str) -> Any:
        """Rows of the business, its settings and its endpoints, without what the endpoints have counted."""

    async def start(self, business_id: str) -> None:
        """LEAVING becomes MOVING."""

    async def take(self, business_id: str, now: datetime, limit: int) -> int:
        """Payments that are on their way from now on, with all that is theirs; how many. One whose charge is being
        started, or that a delivery is being sent of, is left for later, and so is one that somebody holds."""

    async def has_payments(self, business_id: str) -> bool: ...

    async def under_way(self, business_id: str, limit: int) -> list["MovingPayment"]: ...

    async def arrived(self, references: Sequence[str]) -> None:
        """Nothing is kept of them but where they went."""

    async def belongings(self, business_id: str) -> Any:
        """Rows of its keys, its members and what its endpoints have counted."""

    async def leave(self, business_id: str) -> bool:
        """Nothing is kept but where the business and its keys went; False, and nothing is changed, while a payment is
        here."""

    # Of the cell that it arrives at. `gateways` are the ids there of the other cell's.

    async def prepare(self, move: BusinessMove, profile: Any, gateways: Mapping[str, str]) -> None:
        """Makes the business, closed as it is where it comes from; nothing where it is there already."""

    async def receive(self, payments: Sequence["MovingPayment"], gateways: Mapping[str, str]) -> int:
        """Adds those that are not there; how many."""

    async def receive_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Adds those that are not there."""

    async def open(self, business_id: str, belongings: Any) -> bool:
        """Its keys and members hold from now on; False where they did before."""


@dataclass(frozen=True)
class MovingPayment:
    """A payment on its way, with all that is found by its reference."""

    reference: str
    rows: Any
