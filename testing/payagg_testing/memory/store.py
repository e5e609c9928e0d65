"""One store over one State: a transaction at a time, undone whole when its block raises."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pkgutil import resolve_name
from typing import Any, cast

from payagg.application.ports.accounts import KeyHolder, Membership
from payagg.application.ports.gateways import GatewayChoices
from payagg.application.ports.outside import KeyStateChanged
from payagg.application.ports.providers import ProviderEvent, RefusedEvent
from payagg.application.ports.store import Kept, Transaction
from payagg.application.ports.webhooks import DeliveryQueue
from payagg.domain.attempt import Attempt
from payagg.domain.business import Business
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import RateLimit
from payagg.domain.values import CLOCK_SLACK, Environment
from payagg_testing.memory.accounts import (
    MemoryApiKeys,
    MemoryAudit,
    MemoryBusinesses,
    MemoryMembers,
)
from payagg_testing.memory.attempts import MemoryAttempts
from payagg_testing.memory.delivery_queue import MemoryDeliveryQueue
from payagg_testing.memory.endpoints import MemoryEndpoints
from payagg_testing.memory.gateways import MemoryGatewayChoices, MemoryGateways
from payagg_testing.memory.payments import (
    MemoryPayments,
    MemoryProviderCalls,
    MemoryResolutions,
)
from payagg_testing.memory.provider_events import MemoryHealth, MemoryProviderEvents
from payagg_testing.memory.reports import (
    MemoryAdjustments,
    MemoryAnomalies,
    MemoryPaymentSearch,
    MemoryReconciliations,
)
from payagg_testing.memory.state import HitWindow, State
from payagg_testing.memory.upkeep import MemoryUpkeep
from payagg_testing.memory.webhook_events import MemoryWebhookEvents

# Imported when one is asked for, by the name of the class that Postgres has: there need not be every extension.
OF_EXTENSIONS = {
    "ArchiveRows": "archive:MemoryArchive",
    "PartRows": "archive:MemoryArchiveParts",
    "SessionRows": "console_sessions:MemoryConsoleSessions",
}


@dataclass(frozen=True)
class MemoryTransaction(Transaction):
    businesses: MemoryBusinesses
    members: MemoryMembers
    api_keys: MemoryApiKeys
    gateways: MemoryGateways
    gateway_choices: MemoryGatewayChoices
    payments: MemoryPayments
    attempts: MemoryAttempts
    provider_calls: MemoryProviderCalls
    upkeep: MemoryUpkeep
    anomalies: MemoryAnomalies
    adjustments: MemoryAdjustments
    reconciliations: MemoryReconciliations
    resolutions: MemoryResolutions
    payment_search: MemoryPaymentSearch
    endpoints: MemoryEndpoints
    webhook_events: MemoryWebhookEvents
    inbox: MemoryProviderEvents
    health: MemoryHealth
    audit: MemoryAudit
    state: State

    def of(self, repository: type[Kept]) -> Kept:
        own = resolve_name(f"payagg_testing.memory.{OF_EXTENSIONS[repository.__name__]}")
        return cast(Kept, own(self.state))


class MemoryStore:
    """One lock makes transactions serial, so no row is ever locked by another."""

    def __init__(self) -> None:
        self.state = State()
        self.queue: DeliveryQueue = MemoryDeliveryQueue(self)
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None
        repositories = {
            one.name: cast(Any, one.type)(self.state) for one in fields(MemoryTransaction) if one.name != "state"
        }
        self.transaction = MemoryTransaction(**repositories, state=self.state)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[MemoryTransaction]:
        me = asyncio.current_task()
        if me is not None and self._holder is me:
            # A second connection inside the first would deadlock a full pool; raise instead of hanging.
            raise RuntimeError("a transaction inside a transaction")
        async with self._lock:
            self._holder = me
            saved = self.state.snapshot()
            try:
                yield self.transaction
            except BaseException:
                self.state.restore(saved)
                raise
            finally:
                self._holder = None

    async def find_key(self, secret_hash: bytes) -> KeyHolder | None:
        key = next((key for key in self.state.api_keys.values() if key.secret_hash == secret_hash), None)
        return KeyHolder(key, self.state.businesses[key.business_id]) if key else None

    async def touch_key(self, key_id: str, now: datetime) -> None:
        async with self.begin():
            key = self.state.api_keys.get(key_id)
            if key is not None and key.is_use_stale(now):
                self.state.api_keys[key_id] = replace(key, last_used_at=now)

    async def is_revoked(self, token_id: str | None, subject: str, issued_at: datetime) -> bool:
        return any(one.refuses(token_id, subject, issued_at) for one in self.state.revocations.values())

    async def find_member(
        self, business_id: str, token_id: str | None, subject: str, issued_at: datetime
    ) -> Membership:
        is_revoked = await self.is_revoked(token_id, subject, issued_at)
        role = self.state.members.get((business_id, subject))
        return Membership(is_revoked, role, self.state.businesses.get(business_id))

    async def find_payment(self, reference: str, cached: KeyHolder | None = None) -> Payment | None:
        async with self.begin() as tx:
            await self._ensure_standing(cached)
            return await tx.payments.get(reference)

    async def add_payment(self, payment: Payment, cached: KeyHolder | None = None) -> tuple[Payment, bool]:
        async with self.begin() as tx:
            await self._ensure_standing(cached)
            if await tx.payments.add(payment):
                return payment, True
            original = self._original(payment.business_id, payment.environment, payment.idempotency_key)
            assert original is not None
            return original, False

    async def find_original(
        self, business_id: str, environment: Environment, key: str, cached: KeyHolder | None = None
    ) -> Payment | None:
        async with self.begin():
            await self._ensure_standing(cached)
            return self._original(business_id, environment, key)

    def _original(self, business_id: str, environment: Environment, key: str | None) -> Payment | None:
        reference = self.state.idempotency_keys.get((business_id, environment, key)) if key is not None else None
        return self.state.payments[reference] if reference is not None else None

    async def _ensure_standing(self, cached: KeyHolder | None) -> None:
        if cached is not None:
            holder = await self.find_key(cached.key.secret_hash)
            if holder is None or holder.key_state != cached.key_state:
                raise KeyStateChanged

    async def find_checkout(self, reference: str) -> tuple[Payment, Business] | None:
        async with self.begin() as tx:
            payment = await tx.payments.get(reference)
            return (payment, self.state.businesses[payment.business_id]) if payment is not None else None

    async def find_with_attempts(self, reference: str) -> tuple[Payment, list[Attempt]] | None:
        async with self.begin() as tx:
            payment = await tx.payments.get(reference)
            return (payment, await tx.attempts.of_payment(reference)) if payment is not None else None

    async def find_choices(self, business_id: str) -> GatewayChoices:
        async with self.begin() as tx:
            return await tx.gateway_choices.of_business(business_id)

    async def find_retiring_gateways(self, slug: str) -> list[Gateway]:
        async with self.begin() as tx:
            return await tx.gateways.settling(slug)

    async def make_partitions(self, prefix: str, now: datetime) -> int:
        return 0

    async def drop_partitions(self, before: datetime) -> int:
        return 0

    async def begin_check(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        async with self.begin():
            attempt = self.state.attempts.get((reference, number))
            last = attempt.last_ask_at if attempt is not None else None
            if attempt is None or (last is not None and now - every < last <= now + CLOCK_SLACK):
                return False
            self.state.attempts[reference, number] = replace(attempt, last_ask_at=now)
            return True

    async def keep_event(self, event: ProviderEvent) -> bool:
        async with self.begin() as tx:
            return await tx.inbox.add(event)

    async def is_current(self) -> bool:
        return True  # the rows are this code's dataclasses

    async def versions(self) -> tuple[str, str]:
        return "in memory", "none"

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        async with self.begin():
            for key, value in counts.items():
                self.state.counts[key] = self.state.counts.get(key, 0) + value

    async def counts(self) -> dict[tuple[str, ...], int]:
        return dict(self.state.counts)

    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        async with self.begin():
            return self.state.hits.setdefault(bucket, HitWindow()).hit(limit, now)

    async def keep_refused(self, event: RefusedEvent) -> None:
        async with self.begin():
            self.state.refused[event.provider, event.environment, event.fault, event.slot] = event
