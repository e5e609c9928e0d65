"""The port of the database: transactions, the queue of deliveries, and calls that are one transaction each."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from payagg.application.ports.accounts import (
    ApiKeyRepository,
    AuditRepository,
    BusinessRepository,
    KeyHolder,
    MemberRepository,
    Membership,
)
from payagg.application.ports.gateways import (
    GatewayChoiceRepository,
    GatewayChoices,
    GatewayRepository,
    HealthRepository,
)
from payagg.application.ports.payments import (
    AttemptRepository,
    PaymentRepository,
    ProviderCallRepository,
    ResolutionRepository,
)
from payagg.application.ports.providers import ProviderEvent, ProviderEventRepository, RefusedEvent
from payagg.application.ports.reports import (
    AdjustmentRepository,
    AnomalyRepository,
    PaymentSearchRepository,
    ReconciliationRepository,
)
from payagg.application.ports.upkeep import UpkeepRepository
from payagg.application.ports.webhooks import DeliveryQueue, EndpointRepository, WebhookEventRepository
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment

Kept = TypeVar("Kept")


class Transaction(Protocol):
    """One database transaction, as repositories."""

    businesses: BusinessRepository
    members: MemberRepository
    api_keys: ApiKeyRepository
    gateways: GatewayRepository
    gateway_choices: GatewayChoiceRepository
    payments: PaymentRepository
    attempts: AttemptRepository
    provider_calls: ProviderCallRepository
    upkeep: UpkeepRepository
    anomalies: AnomalyRepository
    adjustments: AdjustmentRepository
    reconciliations: ReconciliationRepository
    resolutions: ResolutionRepository
    payment_search: PaymentSearchRepository
    endpoints: EndpointRepository
    webhook_events: WebhookEventRepository
    inbox: ProviderEventRepository
    health: HealthRepository
    audit: AuditRepository

    def of(self, repository: type[Kept]) -> Kept:
        """An extension's repository, in this transaction: a class that is made of the connection."""


class Store(Protocol):
    """`begin` is the general way; every other call is one statement and one transaction, so an adapter may batch
    concurrent callers into one round trip and one commit."""

    def begin(self) -> AbstractAsyncContextManager[Transaction]:
        """Leaving the block commits, raising rolls back."""

    @property
    def queue(self) -> DeliveryQueue: ...

    async def find_key(self, secret_hash: bytes) -> KeyHolder | None:
        """Read at the moment of the call: it sees every revocation answered before."""

    async def touch_key(self, key_id: str, now: datetime) -> None:
        """Writes `last_used_at`, unless another process did within the minute."""

    async def is_revoked(self, token_id: str | None, subject: str, issued_at: datetime) -> bool:
        """Whether a bearer token is revoked, read at the moment of the call."""

    async def find_member(
        self, business_id: str, token_id: str | None, subject: str, issued_at: datetime
    ) -> Membership:
        """The same, with the subject's place in a business."""

    async def find_payment(self, reference: str, cached: KeyHolder | None = None) -> Payment | None:
        """With `cached`, a holder read earlier: raises KeyStateChanged unless its state is the same."""

    async def add_payment(self, payment: Payment, cached: KeyHolder | None = None) -> tuple[Payment, bool]:
        """The stored payment and whether it is new; the original when its idempotency key is taken.

        Durable when it returns. Raises ReferenceTaken. With `cached` as above: for a holder whose state differs nothing
        is added and no original is returned.
        """

    async def find_original(
        self, business_id: str, environment: Environment, key: str, cached: KeyHolder | None = None
    ) -> Payment | None:
        """The payment that holds the idempotency key; with `cached` as above."""

    async def find_checkout(self, reference: str) -> tuple[Payment, Business] | None:
        """A payment and its business, for its payer."""

    async def find_with_attempts(self, reference: str) -> tuple[Payment, list[Attempt]] | None:
        """A payment and its attempts by number."""

    async def find_choices(self, business_id: str) -> GatewayChoices:
        """As `GatewayRepository.choices`, outside a transaction."""

    async def find_retiring_gateways(self, slug: str) -> list[Gateway]:
        """Gateways whose secrets may sign events under the slug: the one not deleted, then DELETED ones with secrets on
        file, the latest deleted first."""

    async def make_partitions(self, prefix: str, now: datetime) -> int:
        """Creates the partitions of the coming weeks for the prefix's payments, if the store has any; how many."""

    async def drop_partitions(self, before: datetime) -> int:
        """Drops partitions that ended by `before` and hold nothing younger or pending; how many."""

    async def begin_check(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        """Whether the caller may check the attempt at its provider now: one conditional update of `last_ask_at`."""

    async def keep_event(self, event: ProviderEvent) -> bool:
        """Whether it is new; durable when it returns. As `ProviderEventRepository.add`, outside a transaction."""

    async def is_current(self) -> bool:
        """Whether this code may work on the schema; raises Unavailable when the database is away."""

    async def versions(self) -> tuple[str, str]:
        """The versions of the database and of its newest migration."""

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        """Adds this process's counts (name, then labels) to the totals of all processes."""

    async def counts(self) -> dict[tuple[str, ...], int]: ...

    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        """Counts one more in `bucket`, over all processes. When the window that ends `now` is full, it counts nothing
        and returns when there will be room."""

    async def keep_refused(self, event: RefusedEvent) -> None:
        """Replaces the one with the same provider, environment, fault and slot."""
