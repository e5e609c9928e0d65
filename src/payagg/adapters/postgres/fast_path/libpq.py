"""Single statements on libpq itself, as the driver exposes it.

A cursor prepares itself anew for each statement and asks the loop for the socket anew for each answer. For a lone
request that was a seventh of all it waited for (docs/performance.md). Connecting, types and errors stay the driver's.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString

import msgspec
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.json import set_json_loads

from payagg.adapters.postgres.connections import Connect, DriverConnection, was_closed
from payagg.adapters.postgres.errors import meaning, translated


class StatementPool:
    """At most `most` connections for single statements, each a transaction of its own."""

    def __init__(self, connect: Connect, most: int) -> None:
        self._connect = connect
        self._idle: list[StatementConnection] = []
        self._free = asyncio.Semaphore(most)

    async def run(self, statement: LiteralString, parameters: Sequence[Any]) -> list[Any]:
        """The rows of one statement with $1, $2 ... for its parameters; raises what `meaning` says of an error."""
        async with self._free:
            line = await self._open()
            try:
                return await line.run(statement, parameters)
            except psycopg.Error as error:
                raise meaning(error) from None
            finally:
                # Anything else is a connection that was lost, or a caller that gave up in the middle.
                if line.is_idle:
                    self._idle.append(line)
                else:
                    await line.close()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _open(self) -> "StatementConnection":
        while self._idle:
            # The one used last is the likeliest to be warm: its statements are prepared.
            line = self._idle.pop()
            if not line.was_closed:
                return line
            await line.close()
        with translated():
            return StatementConnection(await self._connect())


class StatementConnection:
    """One connection, for one statement at a time. From here on only this class may wait for its socket."""

    def __init__(self, connection: DriverConnection) -> None:
        self._connection = connection
        self._wire = connection.pgconn
        set_json_loads(msgspec.json.decode, connection)
        self._types = Transformer(connection)
        self._prepared: dict[str, bytes] = {}
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._socket: int | None = self._wire.socket
        self._loop.add_reader(self._socket, self._wake)

    @property
    def is_idle(self) -> bool:
        return self._wire.transaction_status == TransactionStatus.IDLE

    @property
    def was_closed(self) -> bool:
        """Whether the server has hung up since the last statement."""
        return self._socket is None or was_closed(self._connection)

    async def run(self, statement: LiteralString, parameters: Sequence[Any]) -> list[Any]:
        """The rows; raises psycopg.Error."""
        values = self._types.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        try:
            result = await self._sent(statement, values, self._types.types or (), self._types.formats)
        except BaseException:
            # At once: libpq may have closed the socket, whose number another connection may get.
            self._leave_socket()
            raise
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result, self._types.encoding)
        self._types.set_pgresult(result)
        return self._types.load_rows(0, result.ntuples, tuple)

    async def close(self) -> None:
        self._leave_socket()
        await self._connection.close()

    async def _sent(
        self, statement: str, values: Sequence[Buffer | None], types: Sequence[int], formats: Sequence[int] | None
    ) -> PGresult:
        if self._connection.prepare_threshold is None:  # PgBouncer stands between
            self._wire.send_query_params(statement.encode(), values, types, formats)
            return await self._answer()
        name = self._prepared.get(statement)
        if name is None:
            name = b"hot_%d" % len(self._prepared)
            self._wire.send_prepare(name, statement.encode(), types)
            result = await self._answer()
            if result.status == ExecStatus.FATAL_ERROR:
                return result
            self._prepared[statement] = name
        self._wire.send_query_prepared(name, values, formats)
        return await self._answer()

    async def _answer(self) -> PGresult:
        while self._wire.flush():  # the socket takes no more for now; the server may want to be heard first
            await self._ready(writing=True)
            self._wire.consume_input()
        first: PGresult | None = None
        while True:
            while self._wire.is_busy():
                await self._ready()
                self._wire.consume_input()
            result = self._wire.get_result()
            if result is None:
                break
            first = first or result
        if first is None:
            raise psycopg.OperationalError("the connection ended without an answer")
        return first

    async def _ready(self, *, writing: bool = False) -> None:
        assert self._socket is not None
        self._waiter = self._loop.create_future()
        if writing:
            self._loop.add_writer(self._socket, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if writing:
                self._loop.remove_writer(self._socket)

    def _wake(self) -> None:
        if self._waiter is None:
            self._leave_socket()  # between statements the server says nothing but its farewell
        elif not self._waiter.done():
            self._waiter.set_result(None)

    def _leave_socket(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket = None
