"""What the use cases need from the world. Every Protocol is here; adapters fit them without inheriting."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Protocol

from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.api_key import ApiKey
from payagg.domain.attempt import Attempt, Charge, HandOff
from payagg.domain.audit import ActorRealm, AuditEntry, AuditFilter
from payagg.domain.business import Business, Role
from payagg.domain.gateway import BusinessGateway, Gateway
from payagg.domain.health import Health
from payagg.domain.payment import Payment, Transition
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.rate_limit import EPOCH, RateLimit
from payagg.domain.report import ProviderReport
from payagg.domain.revocation import Revocation
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, Event, WebhookEndpoint


class Unavailable(Exception):
    """The database cannot be reached or lost the connection: nothing is known to be wrong with the request."""


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


class Images(Protocol):
    async def kind(self, content: bytes) -> str:
        """`png` or `jpg`, told from the content and proved by decoding it; raises VALIDATION_ERROR on `file`."""


class LogoStore(Protocol):
    """Files by path. Each call raises Unavailable when the store cannot be reached."""

    async def put(self, path: str, content: bytes) -> None: ...

    async def get(self, path: str) -> bytes | None: ...

    async def delete(self, path: str) -> None: ...


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


# --- storage -----------------------------------------------------------------------------------------------------


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

    async def to_wipe(self, now: datetime) -> list[Gateway]:
        """Locked rows (skipping locked ones): DELETED ones that have secrets on file, and any whose replaced secrets
        have ended by `now`. At most 100."""

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
    """A payment with what a change of its status needs: its attempts by number, and the active endpoints of its
    business and environment."""

    payment: Payment
    attempts: list[Attempt]
    subscribers: list[WebhookEndpoint]


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

    async def expired(self, now: datetime, limit: int) -> list[Payment]:
        """INITIATED payments past their window, oldest first, locked, skipping what others hold."""

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

    async def end_asks(self, reference: str) -> None:
        """No attempt of the payment is asked about any more. Call under `lock`."""

    async def oldest_ask(self, gateways: Collection[str], now: datetime) -> datetime | None:
        """The earliest `next_ask_at` at these gateways that has passed by `now`."""

    async def has_open_attempts(self, gateway_id: str) -> bool:
        """Whether any attempt of the gateway is still to be asked about: its `next_ask_at` is set."""

    async def open_attempts(self, gateway_id: str, most: int) -> int:
        """How many of them there are, counted up to `most`."""

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


class AnomalyRepository(Protocol):
    async def add(self, anomaly: Anomaly) -> None: ...

    async def of_payment(self, reference: str) -> list[Anomaly]:
        """Newest first, at most 1,000."""

    async def lock(self, anomaly_id: str) -> Anomaly | None: ...

    async def save(self, anomaly: Anomaly) -> None:
        """Only what people do about it; the fact itself cannot change."""

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        """Newest first: ids are ordered by time."""

    async def unclosed(self) -> dict[AnomalyKind, int]:
        """How many of each kind are not closed."""


class HealthRepository(Protocol):
    async def all(self) -> list[Health]: ...

    async def lock(self, gateway: str, environment: Environment) -> Health:
        """The row, locked, made when absent."""

    async def save(self, health: Health) -> None: ...


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

    async def emit(self, event: Event, deliveries: Sequence[Delivery]) -> None: ...

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        """A page, newest first, and the total from counters. Strictly older than the id `after` where it is given;
        what stands before the offset costs time, what stands before `after` does not."""

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        """Locked for update. Lock its endpoint first, as the queue does."""

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        """PENDING again and due now, under the same ids; counters follow."""

    async def events(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        """Past events in the order of their ids, strictly after the cursor. None is shown while a transaction that
        may still commit an earlier one is open, so a cursor never passes an event by."""

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]: ...

    async def events_of(self, references: Sequence[str]) -> list[Event]:
        """The events of these payments, locked."""

    async def save_bodies(self, events: Sequence[Event]) -> None: ...


class AuditRepository(Protocol):
    """Entries are added and read; the store refuses to change or delete one."""

    async def add(self, entry: AuditEntry) -> None: ...

    async def listed(self, wanted: AuditFilter, after: str | None, limit: int) -> list[AuditEntry]:
        """By id, newest first, strictly older than the id `after`."""


class RevocationRepository(Protocol):
    async def add(self, revocation: Revocation) -> None:
        """One for the same claim and value keeps the later of both instants."""


class Transaction(Protocol):
    """One database transaction, seen as the tables' repositories."""

    @property
    def businesses(self) -> BusinessRepository: ...

    @property
    def api_keys(self) -> ApiKeyRepository: ...

    @property
    def gateways(self) -> GatewayRepository: ...

    @property
    def payments(self) -> PaymentRepository: ...

    @property
    def anomalies(self) -> AnomalyRepository: ...

    @property
    def payment_search(self) -> PaymentSearchRepository: ...

    @property
    def webhooks(self) -> WebhookRepository: ...

    @property
    def inbox(self) -> ProviderEventRepository: ...

    @property
    def health(self) -> HealthRepository: ...

    @property
    def audit(self) -> AuditRepository: ...

    @property
    def revocations(self) -> RevocationRepository: ...


@dataclass(frozen=True)
class KeyHolder:
    """A presented key and the business behind it, as they are now or, `is_remembered`, as they were when the key was
    last read."""

    key: ApiKey
    business: Business
    is_remembered: bool = False
    realm: ClassVar[ActorRealm] = ActorRealm.KEY

    @property
    def subject(self) -> str:
        return self.key.id

    @property
    def proof(self) -> "KeyHolder | None":
        """What the store has to compare before it acts: nothing for a key that was read for this request."""
        return self if self.is_remembered else None

    @property
    def standing(self) -> tuple[str, str, str]:
        """All that can change about who may initiate: status of the key, status and KYC of the business."""
        return self.key.status.value, self.business.status.value, self.business.kyc_status.value


class DeliveryQueue(Protocol):
    """The outbox's sending side; each call is its own short transaction."""

    async def claim(
        self, now: datetime, limit: int, per_partition: int, failing: int, lease: timedelta
    ) -> list["ClaimedDelivery"]:
        """Due deliveries, leased and counted as a try: in flight in one partition as many as its endpoint's
        `concurrency` (CONCURRENCY_START where there is none) and `per_partition` allow, one where the endpoint is
        failing, and at most `failing` of such, chosen so that none waits for ever.

        A delivery whose lease ran out is claimed again under the same number of tries, and `lost_tries` counts it.
        None that waits as a suspect is among them."""

    async def claim_suspect(self, now: datetime, lease: timedelta) -> "ClaimedDelivery | None":
        """The suspect that has been due longest, leased as by `claim` whatever else is in flight in its partition."""

    async def finish(self, results: Sequence["DeliveryResult"]) -> None:
        """Records tries whose token still matches; moves counters and, unless the try was blameless or the endpoint's
        address was changed meanwhile, `concurrency`, `failing_since` and deactivation, which goes into the audit
        trail. A record ends a run of lost tries; a result that is `lost` tells of that run alone."""

    async def release(self, claimed: Sequence["ClaimedDelivery"]) -> None:
        """Hands back what a stopping worker had not started; the try is not counted."""

    async def oldest_due(self, now: datetime) -> datetime | None: ...

    async def due(self, now: datetime, limit: int) -> int:
        """How many deliveries are due and in nobody's hands; counted up to `limit`."""

    async def deactivated(self) -> int:
        """How many endpoints are switched off."""

    async def purge(self, before: datetime, limit: int) -> int:
        """Deletes ended deliveries and events older than `before`, and removed endpoints that have no delivery left,
        in a bounded batch."""


@dataclass(frozen=True)
class ClaimedDelivery:
    """A leased delivery with what sending needs. `secrets` are the sealed signing secrets, newest first, with the
    endpoint id each was sealed for."""

    delivery: Delivery
    body: bytes
    url: str
    secrets: tuple[tuple[str, bytes], ...]
    is_lease_expired: bool = False  # another worker's lease ran out before it recorded its try
    is_failing: bool = False  # the endpoint was, when this was claimed


@dataclass(frozen=True)
class DeliveryResult:
    """The result of one try: `retry_at` None ends the delivery, `deactivate` switches the endpoint off, and one that is
    `blameless` failed through us and says nothing of the endpoint. Where `lost` none was made: the ones before were
    lost with their workers."""

    claimed: ClaimedDelivery
    sent: TryResult
    at: datetime
    retry_at: datetime | None
    deactivate: bool = False
    blameless: bool = False
    lost: bool = False


class Store(Protocol):
    """`begin` is the general way; the other calls are single statements that each are a whole transaction, so an
    adapter may let callers that wait at the same moment share one round trip and one commit."""

    def begin(self) -> AbstractAsyncContextManager[Transaction]:
        """Leaving the block commits, raising rolls back."""

    @property
    def queue(self) -> DeliveryQueue: ...

    async def find_key(self, secret_hash: bytes) -> KeyHolder | None:
        """Read at the moment of the call: a revocation that was answered before is seen."""

    async def touch_key(self, key_id: str, now: datetime) -> None:
        """Writes `last_used_at`, unless another process did within the minute."""

    async def is_revoked(self, token_id: str | None, subject: str, issued_at: datetime) -> bool:
        """Whether a bearer token is revoked, read at the moment of the call."""

    async def find_payment(self, reference: str, remembered: KeyHolder | None = None) -> Payment | None:
        """With `remembered`, a holder read some time ago: raises StaleKey unless its standing is still the same."""

    async def add_payment(self, payment: Payment, remembered: KeyHolder | None = None) -> tuple[Payment, bool]:
        """The stored payment and whether it is new; the original when its idempotency key is taken.

        Durable when it returns. Raises ReferenceTaken. With `remembered` as above: then nothing is added, and
        no original shown, for a holder that stands otherwise by now.
        """

    async def find_original(
        self, business_id: str, environment: Environment, key: str, remembered: KeyHolder | None = None
    ) -> Payment | None:
        """The payment that holds the idempotency key; with `remembered` as above."""

    async def find_checkout(self, reference: str) -> tuple[Payment, Business] | None:
        """A payment and whose it is, for its payer."""

    async def find_choices(self, business_id: str) -> GatewayChoices:
        """As `GatewayRepository.choices`, where nothing is to be decided in a transaction."""

    async def find_settling(self, slug: str) -> list[Gateway]:
        """Whose secrets may sign events under the slug: the living gateway, then DELETED ones that have secrets on
        file, the latest deleted first."""

    async def begin_ask(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        """Whether the caller may ask the provider about the attempt now: one conditional update of `last_ask_at`."""

    async def is_current(self) -> bool:
        """Whether this code may work on the schema; raises Unavailable when it cannot be asked."""

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        """Adds what this process counted (name, then labels) to the totals of all processes."""

    async def counts(self) -> dict[tuple[str, ...], int]: ...

    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        """Counts one more in `bucket`, over all processes. Where there is no room in the window that ends `now`, it
        counts nothing and says when there will be."""

    async def keep_refused(self, event: RefusedEvent) -> None:
        """In the place of the one before in the same provider, environment, fault and slot."""
