"""The database as the use cases see it: transactions, the queue of deliveries, and calls that are one each."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

from payagg.application.ports.accounts import (
    ApiKeyRepository,
    AuditRepository,
    BusinessRepository,
    ConsoleSessionRepository,
    KeyHolder,
    MemberRepository,
    RevocationRepository,
)
from payagg.application.ports.archive import ArchivePartRepository, ArchiveRepository
from payagg.application.ports.cells import CellMoveRepository
from payagg.application.ports.gateways import (
    GatewayChoiceRepository,
    GatewayChoices,
    GatewayRepository,
    HealthRepository,
)
from payagg.application.ports.payments import (
    AttemptRepository,
    PaymentRepository,
    PaymentUpkeepRepository,
    ProviderCallRepository,
    ResolutionRepository,
)
from payagg.application.ports.provider_events import ProviderEventRepository, RefusedEvent
from payagg.application.ports.reports import (
    AdjustmentRepository,
    AnomalyRepository,
    PaymentSearchRepository,
    ReconciliationRepository,
)
from payagg.application.ports.upkeep import FutureInstantRepository, SealedRepository
from payagg.application.ports.webhooks import (
    DeliveryQueue,
    EndpointRepository,
    WebhookEventRepository,
)
from payagg.domain.business import Business
from payagg.domain.console_session import ConsoleSession
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import Environment


class Transaction(Protocol):
    """One database transaction, seen as the tables' repositories."""

    @property
    def businesses(self) -> BusinessRepository: ...

    @property
    def members(self) -> MemberRepository: ...

    @property
    def api_keys(self) -> ApiKeyRepository: ...

    @property
    def gateways(self) -> GatewayRepository: ...

    @property
    def gateway_choices(self) -> GatewayChoiceRepository: ...

    @property
    def payments(self) -> PaymentRepository: ...

    @property
    def attempts(self) -> AttemptRepository: ...

    @property
    def provider_calls(self) -> ProviderCallRepository: ...

    @property
    def payment_upkeep(self) -> PaymentUpkeepRepository: ...

    @property
    def anomalies(self) -> AnomalyRepository: ...

    @property
    def adjustments(self) -> AdjustmentRepository: ...

    @property
    def reconciliations(self) -> ReconciliationRepository: ...

    @property
    def resolutions(self) -> ResolutionRepository: ...

    @property
    def payment_search(self) -> PaymentSearchRepository: ...

    @property
    def endpoints(self) -> EndpointRepository: ...

    @property
    def webhook_events(self) -> WebhookEventRepository: ...

    @property
    def inbox(self) -> ProviderEventRepository: ...

    @property
    def health(self) -> HealthRepository: ...

    @property
    def future_instants(self) -> FutureInstantRepository: ...

    @property
    def archive(self) -> ArchiveRepository: ...

    @property
    def archive_parts(self) -> ArchivePartRepository: ...

    @property
    def audit(self) -> AuditRepository: ...

    @property
    def revocations(self) -> RevocationRepository: ...

    @property
    def console_sessions(self) -> ConsoleSessionRepository: ...

    @property
    def sealed(self) -> SealedRepository: ...

    @property
    def moves(self) -> CellMoveRepository: ...


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

    async def find_console_session(self, session: bytes) -> ConsoleSession | None:
        """By its digest, read at the moment of the call."""

    async def find_payment(self, reference: str, cached: KeyHolder | None = None) -> Payment | None:
        """With `cached`, a holder read some time ago: raises KeyStateChanged unless its standing is still the same."""

    async def add_payment(self, payment: Payment, cached: KeyHolder | None = None) -> tuple[Payment, bool]:
        """The stored payment and whether it is new; the original when its idempotency key is taken.

        Durable when it returns. Raises ReferenceTaken. With `cached` as above: then nothing is added, and
        no original shown, for a holder that stands otherwise by now.
        """

    async def find_original(
        self, business_id: str, environment: Environment, key: str, cached: KeyHolder | None = None
    ) -> Payment | None:
        """The payment that holds the idempotency key; with `cached` as above."""

    async def find_checkout(self, reference: str) -> tuple[Payment, Business] | None:
        """A payment and whose it is, for its payer."""

    async def find_choices(self, business_id: str) -> GatewayChoices:
        """As `GatewayRepository.choices`, where nothing is to be decided in a transaction."""

    async def find_retiring_gateways(self, slug: str) -> list[Gateway]:
        """Whose secrets may sign events under the slug: the living gateway, then DELETED ones that have secrets on
        file, the latest deleted first."""

    async def make_partitions(self, prefix: str, now: datetime) -> int:
        """Makes room for what payments of the prefix are to leave in the weeks to come, where a store needs any;
        how much it made."""

    async def drop_partitions(self, before: datetime) -> int:
        """Removes whole what lies in partitions that were over at `before`, but nothing that is younger or pending;
        how many it dropped."""

    async def begin_check(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        """Whether the caller may ask the provider about the attempt now: one conditional update of `last_ask_at`."""

    async def is_current(self) -> bool:
        """Whether this code may work on the schema; raises Unavailable when it cannot be asked."""

    async def versions(self) -> tuple[str, str]:
        """The database's own, and the newest migration that it has."""

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        """Adds what this process counted (name, then labels) to the totals of all processes."""

    async def counts(self) -> dict[tuple[str, ...], int]: ...

    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        """Counts one more in `bucket`, over all processes. Where there is no room in the window that ends `now`, it
        counts nothing and says when there will be."""

    async def keep_refused(self, event: RefusedEvent) -> None:
        """In the place of the one before in the same provider, environment, fault and slot."""
