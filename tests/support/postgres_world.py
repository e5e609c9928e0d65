"""What the tests of the Postgres store share: many payments, callers of one moment, and a way that can be disturbed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
from payagg_testing.builders import NOW, a_payment
from payagg_testing.fault_proxy import FaultProxy

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports.accounts import KeyHolder
from payagg.domain.payment import Payment
from payagg.domain.values import make_reference


def numbered(number: int, **fields: Any) -> Payment:
    return a_payment(reference=make_reference("PAY", NOW, number), **fields)


async def together(store: PostgresStore, *payments: Payment, cached: KeyHolder | None = None) -> list[Any]:
    """The answers to callers that ask at one moment, and so share a statement."""
    return await asyncio.gather(*(store.add_payment(payment, cached) for payment in payments), return_exceptions=True)


def execute(url: str, *statements: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Each with these values, in one transaction; the rows of the last one."""
    with psycopg.connect(url) as connection:
        for statement in statements:
            done = connection.execute(statement.encode(), values or None)
        return done.fetchall() if done.description else []


async def count(database_url: str, table: str) -> int:
    [(number,)] = await asyncio.to_thread(execute, database_url, f"SELECT count(*) FROM {table}")
    return int(number)


def somebody_waits(database_url: str) -> bool:
    """For a lock that somebody else holds, in this database."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return execute(database_url, waits) != []


@asynccontextmanager
async def by_proxy(database_url: str) -> AsyncIterator[tuple[FaultProxy, str]]:
    """A way to the database that can be disturbed, and the URL that takes it."""
    address = urlsplit(database_url)
    host = parse_qs(address.query)["host"][0]
    async with FaultProxy(path=f"{host}/.s.PGSQL.5432") as proxy:
        place = f"127.0.0.1:{proxy.port}{address.path}"
        yield proxy, f"postgresql://payagg@{place}?sslmode=disable&gssencmode=disable"
