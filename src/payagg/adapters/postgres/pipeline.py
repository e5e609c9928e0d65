"""One connection, and the only way to run a statement on it: libpq in pipeline mode, as the driver exposes it.

A statement without a wanted answer is sent with the next one, or with COMMIT; reads need no BEGIN. The driver's cursor
prepares for each statement and registers the socket for each answer, which costs twice as much
(docs/decisions.md). Connecting, types and errors are the driver's.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.json import set_json_loads

from payagg.adapters.postgres.connections import DriverConnection, was_closed
from payagg.adapters.postgres.errors import TAKES_NO_WRITES, translate_errors
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.telemetry import span

ROLLBACK_WAIT = 1.0
LATE = "the database did not answer in time"
RECYCLE = 1800.0  # seconds after which an idle connection is replaced
PREPARED_MAX = 250  # prepared statements of one connection; a few hundred exist in all
BEGIN, COMMIT, ROLLBACK = Statement("BEGIN"), Statement("COMMIT"), Statement("ROLLBACK")
Query = tuple[Statement, dict[str, Any]]
NOT_FOUND = "22012"  # division by zero: see `must_find`
_FAILED = {ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED}


class Unsent(NamedTuple):
    statement: Statement
    values: Sequence[Buffer | None]
    or_else: Exception | None = None  # raised when it had to find a row and did not


class StatementConnection:
    """One connection, for one task at a time. Only this class may wait for its socket."""

    def __init__(self, connection: DriverConnection) -> None:
        self._connection = connection
        self._wire = connection.pgconn
        self._wire.enter_pipeline_mode()
        set_json_loads(msgspec.json.decode, connection)
        self._types = Transformer(connection)
        self._prepared: dict[Statement, bytes] = {}
        self._names = 0
        self._unsent: list[Unsent] = []
        self._in_block = False
        self._has_begun = False
        self._made_at = self._heard_at = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self.until = self._loop.time()  # the deadline, set by the pool, at which the connection is closed
        self._is_late = False
        self._takes_writes = True
        self._waiter: asyncio.Future[None] | None = None
        self._socket: int | None = self._wire.socket
        self._loop.add_reader(self._socket, self._wake)

    @property
    def is_idle(self) -> bool:
        return self._wire.transaction_status == TransactionStatus.IDLE

    @property
    def is_stale(self) -> bool:
        """Whether the connection should be replaced: the server closed it, it holds too many prepared statements or is
        too old, or its server may no longer be the primary."""
        now = time.monotonic()
        is_old = now - self._made_at > RECYCLE or len(self._prepared) > PREPARED_MAX
        is_doubtful = (
            not self._takes_writes
            or self._connection.is_stale_primary
            or now - self._heard_at > self._connection.trusted
        )
        return is_old or is_doubtful or self._socket is None or was_closed(self._connection)

    async def rows(self, statement: Statement, **values: Any) -> list[Any]:
        """The rows as tuples; raises psycopg.Error, also of what was sent before."""
        with span("postgres statement", statement.attributes):
            self.send(statement, **values)
            return self._load_rows((await self._results())[-1])

    async def all(self, *queries: Query) -> list[list[Any]]:
        """The rows of each, in one round trip."""
        for statement, values in queries:
            self.send(statement, **values)
        return [self._load_rows(result) for result in (await self._results())[-len(queries) :]]

    async def row(self, statement: Statement, **values: Any) -> Any | None:
        """The first row, if there is one."""
        rows = await self.rows(statement, **values)
        return rows[0] if rows else None

    async def value(self, statement: Statement, **values: Any) -> Any | None:
        """The first column of the first row, if there is one."""
        rows = await self.rows(statement, **values)
        return rows[0][0] if rows else None

    def send(self, statement: Statement, *, or_else: Exception | None = None, **values: Any) -> None:
        """Sends a statement without a wanted answer: it goes with the next one, or with COMMIT, and fails there.

        `or_else` is raised there when a statement that `must_find` a row finds none.
        """
        ordered = statement.order_values(values)
        dumped = self._types.dump_sequence(ordered, [PyFormat.TEXT] * len(ordered))
        if self._in_block and not self._has_begun and not statement.reads:
            self._has_begun = True
            self._unsent.append(Unsent(BEGIN, ()))
        self._unsent.append(Unsent(statement, dumped, or_else))

    async def flush(self) -> None:
        """Waits for the statements sent without an answer; raises psycopg.Error."""
        if self._unsent:
            await self._results()

    def open_transaction(self) -> None:
        """BEGIN is sent with the first statement that writes or locks."""
        self._in_block = True
        self._has_begun = False

    async def commit(self) -> None:
        """Raises Conflict when the server rolled back; psycopg.Error when the end of the transaction has no answer."""
        if self._has_begun:
            if self._socket is None:
                raise Conflict("the server has hung up")
            # Everything up to one Sync is one transaction: with nothing sent before, it needs no BEGIN.
            is_whole = bool(self._unsent) and self._unsent[0].statement is BEGIN
            if is_whole:
                del self._unsent[0]
            statements = list(self._unsent)
            if not is_whole:
                self.send(COMMIT)
            results = await self._exchange()
            failed = next((number for number, result in enumerate(results) if result.status in _FAILED), None)
            if failed is not None:
                # When the server ends the connection at a statement before COMMIT, nothing was committed.
                is_told = results[failed].error_field(DiagnosticField.SQLSTATE) is not None
                is_statement = failed < len(statements)
                with translate_errors(lost=Conflict if is_told and is_statement else Unavailable):
                    self._check(results[failed], statements[failed].or_else if is_statement else None)
            # Postgres answers COMMIT of a failed transaction with a silent ROLLBACK.
            if results[-1].command_status == b"ROLLBACK":
                raise Conflict("a statement of this transaction had failed")
        self._in_block = self._has_begun = False

    async def rollback(self) -> None:
        """Leaves the transaction, if the connection still can; never raises."""
        self._unsent.clear()
        self._in_block = self._has_begun = False
        is_open = self._wire.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)
        if is_open and self._socket is not None:
            self.until = max(self.until, self._loop.time() + ROLLBACK_WAIT)
            self.send(ROLLBACK)
            with suppress(psycopg.Error, Unavailable):  # the pool closes what is not idle
                await self._exchange()

    async def close(self) -> None:
        self._leave_socket()
        await self._connection.close()

    async def _results(self) -> list[PGresult]:
        """The result of each unsent statement; raises for the first that failed, or found no required row."""
        unsent = self._unsent
        results = await self._exchange()
        for one, result in zip(unsent, results, strict=False):
            self._check(result, one.or_else)
        return results

    def _load_rows(self, result: PGresult) -> list[Any]:
        if not result.ntuples:
            return []  # else the driver looks for what loads each column
        self._types.set_pgresult(result)
        return self._types.load_rows(0, result.ntuples, tuple)

    def _check(self, result: PGresult, or_else: Exception | None) -> None:
        if result.status in _FAILED:
            error = error_from_result(result, self._types.encoding)
            if or_else is not None and error.sqlstate == NOT_FOUND:
                raise or_else
            self._takes_writes = self._takes_writes and error.sqlstate != TAKES_NO_WRITES
            raise error

    async def _exchange(self) -> list[PGresult]:
        """The result of each unsent statement, in order; after a failed one the rest have failed too. Raises
        Unavailable when there was no answer by `until`."""
        if self._socket is None:
            raise psycopg.OperationalError("the server has hung up")
        self._is_late = False
        patience = self._loop.call_at(self.until, self._give_up)
        try:
            made = self._dispatch()
            results = await self._answers()
        except BaseException:
            # At once: libpq may have closed the socket, and another connection may get its number.
            self._leave_socket()
            raise
        finally:
            patience.cancel()
        self._heard_at = time.monotonic()
        own = []
        for result, prepared in zip(results, made, strict=False):
            if prepared is None:
                own.append(result)
            elif result.status != ExecStatus.COMMAND_OK:
                self._prepared.pop(prepared, None)
                if result.status == ExecStatus.FATAL_ERROR:
                    own.append(result)
        return own + results[len(made) :]  # COMMIT itself may fail

    def _dispatch(self) -> list[Statement | None]:
        """Sends the unsent statements; returns for each answer which statement it prepares, or None."""
        made: list[Statement | None] = []
        unsent, self._unsent = self._unsent, []
        for statement, values, _ in unsent:
            if self._connection.prepare_threshold is None:  # behind PgBouncer
                self._wire.send_query_params(statement.sql, values)
            else:
                name = self._prepared.get(statement)
                if name is None:
                    self._names += 1
                    name = self._prepared[statement] = b"s%d" % self._names
                    self._wire.send_prepare(name, statement.sql)
                    made.append(statement)
                self._wire.send_query_prepared(name, values)
            made.append(None)
        self._wire.pipeline_sync()
        return made

    async def _answers(self) -> list[PGresult]:
        results: list[PGresult] = []
        try:
            while self._wire.flush():  # the socket is full; the server's output may have to be read first
                await self._ready(writing=True)
                self._wire.consume_input()
            while True:
                while self._wire.is_busy():
                    await self._ready()
                    self._wire.consume_input()
                result = self._wire.get_result()
                if result is None:  # ends each statement's results
                    if self._wire.status == ConnStatus.BAD:
                        raise psycopg.OperationalError("the connection ended without an answer")
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    return results
                else:
                    results.append(result)
        except psycopg.OperationalError:
            # The server's last message is more specific.
            if not results or results[-1].status not in _FAILED:
                raise
            self._leave_socket()
            return results

    async def _ready(self, *, writing: bool = False) -> None:
        assert self._socket is not None
        if self._is_late:
            raise Unavailable(LATE)
        self._waiter = self._loop.create_future()
        if writing:
            self._loop.add_writer(self._socket, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if writing:
                self._loop.remove_writer(self._socket)

    def _give_up(self) -> None:
        # Between two parts of an answer nobody waits; the next waiter gets it.
        self._is_late = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(Unavailable(LATE))

    def _wake(self) -> None:
        if self._waiter is None:
            # Between statements the server sends only its closing message; asyncio may also call once too often.
            if was_closed(self._connection):
                self._leave_socket()
        elif not self._waiter.done():
            self._waiter.set_result(None)

    def _leave_socket(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket = None
