"""The store on Postgres: transactions for the use cases, and the calls that are one transaction each."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from payagg.adapters.postgres import partitions
from payagg.adapters.postgres.connections import connector
from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.fast_path.batching import batched_notes
from payagg.adapters.postgres.fast_path.statements import FastPath
from payagg.adapters.postgres.migrations import IS_MIGRATED, VERSIONS, fits
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.accounts import (
    FIND_MEMBER,
    IS_REVOKED,
    PostgresApiKeys,
    PostgresAudit,
    PostgresBusinesses,
    PostgresMembers,
    membership,
)
from payagg.adapters.postgres.repositories.anomalies import PostgresAdjustments, PostgresAnomalies
from payagg.adapters.postgres.repositories.attempts import BEGIN_CHECK, PostgresAttempts
from payagg.adapters.postgres.repositories.counters import add_counts, all_counts, count_hit, sweep_hits
from payagg.adapters.postgres.repositories.endpoints import PostgresEndpoints
from payagg.adapters.postgres.repositories.gateways import PostgresGatewayChoices, PostgresGateways
from payagg.adapters.postgres.repositories.payment_search import PostgresPaymentSearch
from payagg.adapters.postgres.repositories.payments import PostgresPayments, PostgresProviderCalls, PostgresResolutions
from payagg.adapters.postgres.repositories.provider_events import ADD as ADD_PROVIDER_EVENT
from payagg.adapters.postgres.repositories.provider_events import EVENT as PROVIDER_EVENT
from payagg.adapters.postgres.repositories.provider_events import PostgresHealth, PostgresProviderEvents, keep_refused
from payagg.adapters.postgres.repositories.reconciliations import PostgresReconciliations
from payagg.adapters.postgres.repositories.upkeep import PostgresUpkeep
from payagg.adapters.postgres.repositories.webhook_events import PostgresWebhookEvents
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.accounts import Membership
from payagg.application.ports.providers import ProviderEvent, RefusedEvent
from payagg.application.ports.store import Kept, Transaction
from payagg.domain.rate_limit import EPOCH, RateLimit
from payagg.domain.values import CLOCK_SLACK

R = TypeVar("R")


class MadeOnce(Generic[R]):
    """A repository over the transaction's connection and those that it `needs`, made when first used: as
    `cached_property`, which takes a lock each time."""

    def __init__(self, make: Callable[..., R], *needs: str) -> None:
        self._make = make
        self._needs = needs

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, tx: "PostgresTransaction", _: type) -> R:
        made = tx.__dict__[self._name] = self._make(tx._connection, *[getattr(tx, name) for name in self._needs])
        return made


class PostgresTransaction(Transaction):
    """The repositories over one connection. Entering begins the transaction, leaving ends it."""

    def __init__(self, transaction: AbstractAsyncContextManager[StatementConnection]) -> None:
        self._transaction = transaction

    async def __aenter__(self) -> "PostgresTransaction":
        self._connection = await self._transaction.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._transaction.__aexit__(*error)

    businesses = MadeOnce(PostgresBusinesses)
    members = MadeOnce(PostgresMembers)
    api_keys = MadeOnce(PostgresApiKeys)
    gateways = MadeOnce(PostgresGateways)
    gateway_choices = MadeOnce(PostgresGatewayChoices)
    payments = MadeOnce(PostgresPayments, "webhook_events")
    attempts = MadeOnce(PostgresAttempts)
    provider_calls = MadeOnce(PostgresProviderCalls)
    upkeep = MadeOnce(PostgresUpkeep)
    anomalies = MadeOnce(PostgresAnomalies)
    adjustments = MadeOnce(PostgresAdjustments)
    reconciliations = MadeOnce(PostgresReconciliations)
    resolutions = MadeOnce(PostgresResolutions)
    payment_search = MadeOnce(PostgresPaymentSearch)
    endpoints = MadeOnce(PostgresEndpoints)
    webhook_events = MadeOnce(PostgresWebhookEvents)
    inbox = MadeOnce(PostgresProviderEvents)
    health = MadeOnce(PostgresHealth)
    audit = MadeOnce(PostgresAudit)

    def of(self, repository: type[Kept]) -> Kept:
        return repository(self._connection)  # type: ignore[call-arg]


NOW = Statement("SELECT clock_timestamp()")
_IS_MIGRATED, _VERSIONS = Statement(IS_MIGRATED, reads=True), Statement(VERSIONS, reads=True)
_RUNNING = Statement("SELECT current_setting('server_version'), max(version_num) FROM alembic_version")


class PostgresStore:
    """At most `pool_size` connections.

    `dates_payments`: the callers' clock is the database's, which dates a payment anew at the moment that it is stored,
    so that lists see payments in the order of their dates. Without, a payment keeps the date that it came with.
    Every call raises Unavailable when the database is down or too busy.
    """

    def __init__(self, database_url: str, *, pool_size: int, pgbouncer: bool, dates_payments: bool = False) -> None:
        self._database_url = database_url
        self.pool = StatementPool(connector(database_url, pgbouncer=pgbouncer), pool_size)
        self._fast_path = FastPath(self.pool, dates_payments=dates_payments)
        self._notes = batched_notes(self.pool)
        self.queue = PostgresDeliveryQueue(self.pool)
        self._swept = EPOCH
        self.find_key, self.touch_key = self._fast_path.find_key, self._fast_path.touch_key
        self.find_payment, self.find_checkout = self._fast_path.find_payment, self._fast_path.find_checkout
        self.find_with_attempts = self._fast_path.find_with_attempts
        self.add_payment, self.find_original = self._fast_path.add_payment, self._fast_path.find_original
        self.find_choices = self._fast_path.find_choices
        self.find_retiring_gateways = self._fast_path.find_retiring_gateways

    def begin(self) -> AbstractAsyncContextManager[PostgresTransaction]:
        return PostgresTransaction(self.pool.transaction())

    async def close(self) -> None:
        """Waits for the statements in flight, then closes every connection."""
        await self._fast_path.close()
        await self._notes.close()
        await self.pool.close()

    async def now(self) -> datetime:
        [(now,)] = await self.pool.read(NOW)
        return now  # type: ignore[no-any-return]

    async def is_current(self) -> bool:
        [(is_migrated,)] = await self.pool.read(_IS_MIGRATED)
        return bool(is_migrated) and fits([version for (version,) in await self.pool.read(_VERSIONS)])

    async def versions(self) -> tuple[str, str]:
        [(server, migration)] = await self.pool.read(_RUNNING)
        return server, migration

    async def is_revoked(self, token_id: str | None, subject: str, issued_at: datetime) -> bool:
        [(is_revoked,)] = await self.pool.read(IS_REVOKED, token_id=token_id, subject=subject, issued_at=issued_at)
        return bool(is_revoked)

    async def find_member(
        self, business_id: str, token_id: str | None, subject: str, issued_at: datetime
    ) -> Membership:
        asked = {"business_id": business_id, "token_id": token_id, "subject": subject, "issued_at": issued_at}
        [row] = await self.pool.read(FIND_MEMBER, **asked)
        return membership(row)

    async def make_partitions(self, prefix: str, now: datetime) -> int:
        return await partitions.in_thread(partial(partitions.make, self._database_url, prefix, now))

    async def drop_partitions(self, before: datetime) -> int:
        return await partitions.in_thread(partial(partitions.drop, self._database_url, before))

    async def begin_check(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        return bool(
            await self.pool.read(
                BEGIN_CHECK, reference=reference, number=number, now=now, before=now - every, last=now + CLOCK_SLACK
            )
        )

    async def keep_event(self, event: ProviderEvent) -> bool:
        # Alone: refused requests share a commit, whose locks and faults must not keep out an event of money.
        return bool(await self.pool.read(ADD_PROVIDER_EVENT, **PROVIDER_EVENT.values(event)))

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        await add_counts(self.pool, counts)

    async def counts(self) -> dict[tuple[str, ...], int]:
        return await all_counts(self.pool)

    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        if now - self._swept >= limit.window:
            self._swept = now
            await sweep_hits(self.pool, now)
        return await count_hit(self._notes, bucket, now, limit)

    async def keep_refused(self, event: RefusedEvent) -> None:
        await keep_refused(self._notes, event)
