"""`--only runner`: one transaction by four ways to run a statement, in turns, and what each costs the client's CPU.

Two reads by key, two inserts and COMMIT, as a status change sends them. Alone on one connection, so that nothing but the
way differs; the same server, the same SQL, prepared by each way in its own manner.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from payagg.adapters.postgres.connections import connector
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement

TRANSACTIONS = 500  # in one round
SCHEMA = "CREATE TABLE IF NOT EXISTS runner (id bigserial PRIMARY KEY, word text NOT NULL, at timestamptz NOT NULL)"
READ = "SELECT id, word, at FROM runner WHERE id = {}"
WRITE = "INSERT INTO runner (word, at) VALUES ({}, now())"
_READ, _WRITE = Statement(READ.format("CAST(:id AS bigint)")), Statement(WRITE.format(":word"))
Work = Callable[[], Awaitable[None]]


async def measured(url: str, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of one transaction by each way: `cpu` of this process, `latency` as it waits; medians of rounds."""
    engine = create_async_engine("postgresql+psycopg" + url[url.index("://") :], pool_size=1)
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    connection.prepare_threshold = 0
    pool = StatementPool(connector(url, pgbouncer=False), 1)
    await connection.execute(SCHEMA)
    ways: dict[str, Work] = {
        "SQLAlchemy's engine": lambda: by_engine(engine),
        "psycopg's connection": lambda: by_connection(connection),
        "psycopg's pipeline mode": lambda: by_pipeline(connection),
        "payagg's runner": lambda: by_runner(pool),
    }
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):  # the first one warms
        for name, work in ways.items():
            cpu, at = time.process_time(), time.perf_counter()
            for _ in range(TRANSACTIONS):
                await work()
            spent = (time.process_time() - cpu, time.perf_counter() - at)
            if number:
                figures[name].append(spent)
    await engine.dispose()
    await connection.close()
    await pool.close()
    return {
        name: {
            "cpu": median(cpu for cpu, _ in spent) / TRANSACTIONS * 1000,
            "latency": median(at for _, at in spent) / TRANSACTIONS * 1000,
        }
        for name, spent in figures.items()
    }


async def by_engine(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        for number in (1, 2):
            (await connection.execute(text(READ.format(":id")), {"id": number})).all()
        for word in ("a", "b"):
            await connection.execute(text(WRITE.format(":word")), {"word": word})


async def by_connection(connection: psycopg.AsyncConnection[Any]) -> None:
    async with connection.transaction():
        for number in (1, 2):
            await (await connection.execute(READ.format("%s"), (number,))).fetchall()
        for word in ("a", "b"):
            await connection.execute(WRITE.format("%s"), (word,))


async def by_pipeline(connection: psycopg.AsyncConnection[Any]) -> None:
    async with connection.pipeline():
        await by_connection(connection)


async def by_runner(pool: StatementPool) -> None:
    async with pool.transaction() as connection:
        for number in (1, 2):
            await connection.rows(_READ, id=number)
        for word in ("a", "b"):
            connection.send(_WRITE, word=word)


def figures(url: str, rounds: int) -> dict[str, dict[str, float]]:
    return asyncio.run(measured(url, rounds))
