"""The database as the use cases see it: transactions, the queue of deliveries, and calls that are one each."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

from payagg.application.ports import TryResult
from payagg.application.repositories import (
    AnomalyRepository,
    ApiKeyRepository,
    ArchiveRepository,
    AuditRepository,
    BusinessRepository,
    CellMoveRepository,
    FutureInstantRepository,
    GatewayChoices,
    GatewayRepository,
    HealthRepository,
    PaymentRepository,
    PaymentSearchRepository,
    ProviderEventRepository,
    ReconciliationRepository,
    RefusedEvent,
    ResolutionRepository,
    RevocationRepository,
    SealedRepository,
    WebhookRepository,
)
from payagg.domain.api_key import ApiKey
from payagg.domain.audit import ActorRealm
from payagg.domain.business import Business
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery


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
    def reconciliations(self) -> ReconciliationRepository: ...

    @property
    def resolutions(self) -> ResolutionRepository: ...

    @property
    def payment_search(self) -> PaymentSearchRepository: ...

    @property
    def webhooks(self) -> WebhookRepository: ...

    @property
    def inbox(self) -> ProviderEventRepository: ...

    @property
    def health(self) -> HealthRepository: ...

    @property
    def future_instants(self) -> FutureInstantRepository: ...

    @property
    def archive(self) -> ArchiveRepository: ...

    @property
    def audit(self) -> AuditRepository: ...

    @property
    def revocations(self) -> RevocationRepository: ...

    @property
    def sealed(self) -> SealedRepository: ...

    @property
    def moves(self) -> CellMoveRepository: ...


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

    async def has_session_ended(self, session: bytes) -> bool:
        """Whether somebody signed out of the console session of that digest, read at the moment of the call."""

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

    async def make_partitions(self, prefix: str, now: datetime) -> int:
        """Makes room for what payments of the prefix are to leave in the weeks to come, where a store needs any;
        how much it made."""

    async def drop_partitions(self, before: datetime) -> int:
        """Removes whole what lies in partitions that were over at `before`, but nothing that is younger or pending;
        how many it dropped."""

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
