"""The connection pool: each connection serves one statement or one transaction, and every wait has a bound."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg

from payagg.adapters.postgres.connections import Connect
from payagg.adapters.postgres.errors import ConnectionLost, meaning, translate_errors
from payagg.adapters.postgres.pipeline import LATE, Query, StatementConnection
from payagg.adapters.postgres.statement import Statement
from payagg.application.deadline import Waiting
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.telemetry import observe, span

R = TypeVar("R")
# Seconds for a connection and its statements outside a request: a frozen host, or a network that drops packets, never
# answers. The server's own limits are a little shorter, so usually the server ends what takes too long. A request has
# its own bound (application/deadline.py).
ANSWER_WAIT = 8.0


class StatementPool:
    """At most `most` connections, a third of them only for single statements: those are short, and must not wait behind
    transactions of several round trips."""

    def __init__(self, connect: Connect, most: int) -> None:
        self._connect = connect
        self._idle: list[StatementConnection] = []
        self._free = asyncio.Semaphore(most)
        self._transactions = asyncio.Semaphore(max(1, most - most // 3))

    async def run(self, statement: Statement, **values: Any) -> list[Any]:
        """The rows of one statement, which is one transaction; raises errors as `meaning` maps them."""
        return await self._alone(lambda connection: connection.rows(statement, **values))

    async def read(self, statement: Statement, **values: Any) -> list[Any]:
        """The rows of a repeatable statement: repeated on another connection when the first is lost."""
        return await _twice(lambda: self.run(statement, **values))

    async def all(self, *queries: Query) -> list[list[Any]]:
        """As `read`, for several statements in one transaction and round trip."""
        return await _twice(lambda: self._alone(lambda connection: connection.all(*queries)))

    async def _alone(self, work: Callable[[StatementConnection], Awaitable[R]]) -> R:
        with Waiting(ANSWER_WAIT) as until:
            connection = await self._take(until)
            try:
                return await work(connection)
            except psycopg.Error as error:
                raise meaning(error) from None
            finally:
                await self._give_back(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[StatementConnection]:
        """One READ COMMITTED transaction: leaving the block commits, raising rolls back.

        Raises Conflict when the server rolled back, Unavailable when COMMIT itself went without an answer.
        """
        with span("postgres transaction"), Waiting(ANSWER_WAIT) as until:
            await _turn(self._transactions, until)
            try:
                connection = await self._take(until)
                try:
                    connection.open_transaction()
                    with translate_errors(lost=Conflict):
                        yield connection
                    with translate_errors():
                        await connection.commit()
                except BaseException:
                    await connection.rollback()
                    raise
                finally:
                    await self._give_back(connection)
            finally:
                self._transactions.release()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _take(self, until: float) -> StatementConnection:
        """A connection, for one caller until it is given back. Nothing made of a generator: each use has one."""
        await _turn(self._free, until)
        try:
            return await self._open(until)
        except BaseException:
            self._free.release()
            raise

    async def _give_back(self, connection: StatementConnection) -> None:
        try:
            # Otherwise the connection was lost, or the caller gave up in the middle.
            if connection.is_idle:
                self._idle.append(connection)
            else:
                await connection.close()
        finally:
            self._free.release()

    async def _open(self, until: float) -> StatementConnection:
        while self._idle:
            # The one used last is warmest: its statements are prepared.
            connection = self._idle.pop()
            if not connection.is_stale:
                connection.until = until
                return connection
            await connection.close()
        try:
            async with asyncio.timeout_at(until):
                with translate_errors():
                    connection = await self._new()
        except TimeoutError:
            raise Unavailable(LATE) from None
        connection.until = until
        return connection

    async def _new(self) -> StatementConnection:
        return StatementConnection(await self._connect())


async def _twice(work: Callable[[], Awaitable[R]]) -> R:
    for _ in range(2):
        try:
            return await work()
        except (ConnectionLost, Conflict):
            continue
    raise Unavailable("the statement was interrupted twice")


async def _turn(places: asyncio.Semaphore, until: float) -> None:
    """Takes one of the slots; raises Unavailable when none is free in time."""
    if not places.locked():
        await places.acquire()
        return
    clock = asyncio.get_running_loop().time
    begun = clock()
    try:
        async with asyncio.timeout_at(until):
            await places.acquire()
    except TimeoutError:
        raise Unavailable("no database connection came free in time") from None
    finally:
        observe("database_wait_seconds", clock() - begun)
