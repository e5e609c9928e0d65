"""The store on Postgres: transactions for the use cases, and the calls that are a transaction each."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property

from psycopg.pq import TransactionStatus
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.connections import BY_INDEX, async_engine, connector
from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.errors import translated
from payagg.adapters.postgres.fast_path.libpq import StatementPool
from payagg.adapters.postgres.fast_path.statements import FastPath
from payagg.adapters.postgres.migrations import HEAD, IS_MIGRATED, VERSIONS
from payagg.adapters.postgres.repositories.anomalies import PostgresAnomalies
from payagg.adapters.postgres.repositories.audit import PostgresAudit
from payagg.adapters.postgres.repositories.businesses import PostgresApiKeys, PostgresBusinesses
from payagg.adapters.postgres.repositories.counters import add_counts, all_counts, count_hit, sweep_hits
from payagg.adapters.postgres.repositories.gateways import PostgresGateways
from payagg.adapters.postgres.repositories.payment_search import PostgresPaymentSearch
from payagg.adapters.postgres.repositories.payments import PostgresPayments
from payagg.adapters.postgres.repositories.provider_events import PostgresHealth, PostgresProviderEvents
from payagg.adapters.postgres.repositories.webhooks import PostgresWebhooks
from payagg.application.ports import Conflict, KeyHolder
from payagg.application.retry import retried
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import EPOCH, RateLimit
from payagg.domain.values import Environment


class PostgresTransaction:
    """The repositories over one connection, each made when first used."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @cached_property
    def businesses(self) -> PostgresBusinesses:
        return PostgresBusinesses(self._connection)

    @cached_property
    def api_keys(self) -> PostgresApiKeys:
        return PostgresApiKeys(self._connection)

    @cached_property
    def gateways(self) -> PostgresGateways:
        return PostgresGateways(self._connection)

    @cached_property
    def payments(self) -> PostgresPayments:
        return PostgresPayments(self._connection)

    @cached_property
    def anomalies(self) -> PostgresAnomalies:
        return PostgresAnomalies(self._connection)

    @cached_property
    def payment_search(self) -> PostgresPaymentSearch:
        return PostgresPaymentSearch(self._connection)

    @cached_property
    def webhooks(self) -> PostgresWebhooks:
        return PostgresWebhooks(self._connection)

    @cached_property
    def inbox(self) -> PostgresProviderEvents:
        return PostgresProviderEvents(self._connection)

    @cached_property
    def health(self) -> PostgresHealth:
        return PostgresHealth(self._connection)

    @cached_property
    def audit(self) -> PostgresAudit:
        return PostgresAudit(self._connection)


class PostgresStore:
    """At most `pool_size` connections, and never fewer than two.

    `dates_payments`: the callers' clock is the database's, which dates a payment anew at the moment that it is stored,
    so that lists see payments in the order of their dates. Without, a payment keeps the date that it came with.
    Every call raises Unavailable when the database is down or too busy.
    """

    def __init__(self, database_url: str, *, pool_size: int, pgbouncer: bool, dates_payments: bool = False) -> None:
        lines = max(1, pool_size // 3)  # they are used for a moment each, transactions for several round trips
        self._engine = async_engine(connector(database_url, pgbouncer=pgbouncer), max(1, pool_size - lines))
        by_index = connector(database_url, pgbouncer=pgbouncer, settings=BY_INDEX)
        self._hot = FastPath(StatementPool(by_index, lines), dates_payments=dates_payments)
        self._queue = PostgresDeliveryQueue(self)
        self._swept = EPOCH

    @property
    def queue(self) -> PostgresDeliveryQueue:
        return self._queue

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[PostgresTransaction]:
        async with self.connection() as connection:
            yield PostgresTransaction(connection)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """One READ COMMITTED transaction: leaving the block commits, raising rolls back.

        Raises Conflict when the server rolled back, Unavailable when COMMIT itself went without an answer.
        """
        with translated():
            async with self._engine.connect() as connection:
                with translated(lost=Conflict):
                    yield connection
                await _ensure_unbroken(connection)
                await connection.commit()

    async def close(self) -> None:
        """Waits for the statements in flight, then closes every connection."""
        await self._hot.close()
        await self._engine.dispose()

    @retried
    async def now(self) -> datetime:
        async with self.connection() as connection:
            now: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
            return now

    @retried
    async def is_current(self) -> bool:
        async with self.connection() as connection:
            if not (await connection.execute(IS_MIGRATED)).scalar():
                return False
            return set((await connection.execute(VERSIONS)).scalars()) == {HEAD}

    async def find_key(self, secret_hash: bytes) -> KeyHolder | None:
        return await self._hot.find_key(secret_hash)

    async def find_payment(self, reference: str, remembered: KeyHolder | None = None) -> Payment | None:
        return await self._hot.find_payment(reference, remembered)

    async def add_payment(self, payment: Payment, remembered: KeyHolder | None = None) -> tuple[Payment, bool]:
        return await self._hot.add_payment(payment, remembered)

    async def find_original(
        self, business_id: str, environment: Environment, key: str, remembered: KeyHolder | None = None
    ) -> Payment | None:
        return await self._hot.find_original(business_id, environment, key, remembered)

    async def touch_key(self, key_id: str, now: datetime) -> None:
        await self._hot.touch_key(key_id, now)

    async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
        async with self.connection() as connection:
            await add_counts(connection, counts)

    async def counts(self) -> dict[tuple[str, ...], int]:
        async with self.connection() as connection:
            return await all_counts(connection)

    @retried
    async def count_hit(self, bucket: str, now: datetime, limit: RateLimit) -> datetime | None:
        async with self.connection() as connection:
            if now - self._swept >= limit.window:
                self._swept = now
                await sweep_hits(connection, now)
            return await count_hit(connection, bucket, now, limit)


async def _ensure_unbroken(connection: AsyncConnection) -> None:
    """Postgres answers COMMIT of a failed transaction with a silent ROLLBACK; raises Conflict instead."""
    raw = await connection.get_raw_connection()
    driver = raw.driver_connection
    if driver is not None and driver.info.transaction_status is TransactionStatus.INERROR:
        raise Conflict("a statement of this transaction had failed")
