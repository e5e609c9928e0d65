"""The runner of statements: a whole answer or a known error, whatever becomes of the connection."""

# ruff: noqa: PT012 - what raises is the end of a block

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import bindparam, update

import payagg.adapters.postgres.pool as module
from payagg.adapters.postgres.connections import connector, conninfo
from payagg.adapters.postgres.errors import ConnectionLost, RuleBroken
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.accounts import BUSINESS
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application import telemetry
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.errors import Refusal
from tests.support.postgres_world import by_proxy

PID = Statement("SELECT pg_backend_pid()", reads=True)
ECHO = Statement("SELECT CAST(:text AS text)", reads=True)
SLOW_ECHO = Statement("SELECT CAST(:text AS text), pg_sleep(0.001)")
ADD_MEMBER = Statement("INSERT INTO members (business_id, subject, role) VALUES (:business_id, 'ada', 'OWNER')")
ADD_BUSINESS = Statement(
    "INSERT INTO businesses (id, name, status, kyc_status, created_at, updated_at) "
    "VALUES (:id, 'Shop', 'ACTIVE', 'APPROVED', now(), now())"
)
COUNT = Statement("SELECT count(*) FROM businesses", reads=True)
KILL = Statement("SELECT pg_terminate_backend(CAST(:pid AS int), 5000)")


@pytest.fixture(scope="module")
def url(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """One database for all these tests: each begins without businesses."""
    with new_database() as url:
        yield url


# A socket is waited for in another way by each loop.
WAYS = {"uvloop, prepared": (True, False), "asyncio, through PgBouncer": (False, True)}


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
def way(request: pytest.FixtureRequest) -> tuple[bool, bool]:
    uses_uvloop, by_pgbouncer = request.param
    return uses_uvloop, by_pgbouncer


@pytest.fixture
def anyio_backend(way: tuple[bool, bool]) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": way[0]}


@pytest.fixture
async def pool(url: str, way: tuple[bool, bool]) -> AsyncIterator[StatementPool]:
    """One connection, so that each statement meets what the last one left."""
    pool = StatementPool(connector(url, pgbouncer=way[1]), 1)
    await pool.run(Statement("DELETE FROM businesses"))
    yield pool
    await pool.close()


async def pid(pool: StatementPool) -> Any:
    [(number,)] = await pool.run(PID)
    return number


TYPES = Statement(
    "SELECT CAST(:a AS text), CAST(:b AS text[]), CAST(:c AS bytea), CAST(:d AS bytea[]), CAST(:e AS bigint), "
    "CAST(:f AS boolean), CAST(:g AS timestamptz), CAST(:h AS interval)"
)
AT = datetime(2025, 1, 31, 12, 0, 0, 250_001, tzinfo=UTC)
VALUES = [
    ("ẹ", ["a", 'b"', None], b"\x00\xff", [b"\x00\xff"], 2**53 - 1, True, AT, timedelta(days=3, microseconds=1)),
    ("", [], b"", [], -1, False, AT, timedelta(0)),
    (None,) * 8,
]
SERIES = Statement("SELECT n FROM generate_series(1, 3) n")
NOTHING = Statement("SELECT 1 WHERE false")


async def test_values_come_back_as_they_went(pool: StatementPool) -> None:
    for _ in range(3):
        for values in VALUES:
            assert await pool.run(TYPES, **dict(zip("abcdefgh", values, strict=True))) == [values]
        assert await pool.run(SERIES) == [(1,), (2,), (3,)]
        assert await pool.run(NOTHING) == []


async def test_more_than_a_socket_takes_at_once_goes_and_comes_whole(pool: StatementPool) -> None:
    text = "naira" * 2_000_000
    [(back,)] = await pool.run(ECHO, text=text)
    assert back == text


async def test_a_refused_statement_leaves_the_connection_in_use(pool: StatementPool) -> None:
    first = await pid(pool)
    with pytest.raises(Refusal):
        await pool.run(Statement("SELECT CAST(:n AS int)"), n="many")
    with pytest.raises(Refusal):
        await pool.run(ECHO, text="a\x00b")
    with pytest.raises(RuleBroken):
        await pool.run(ADD_MEMBER, business_id="nobody")
    unknown = Statement("SELECT nothing")
    for _ in range(2):  # what cannot be prepared is no trap for the next try
        with pytest.raises(RuntimeError):
            await pool.run(unknown)
    assert await pid(pool) == first


async def test_a_connection_that_ends_under_a_statement_is_told_and_replaced(pool: StatementPool) -> None:
    first = await pid(pool)
    with pytest.raises(ConnectionLost):
        await pool.run(Statement("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert await pid(pool) != first


async def test_a_connection_that_ended_between_statements_is_replaced_unnoticed(pool: StatementPool, url: str) -> None:
    first = await pid(pool)
    other = StatementPool(connector(url, pgbouncer=False), 1)
    await other.run(KILL, pid=first)
    second = await pid(pool)
    assert second != first
    await other.run(KILL, pid=second)
    await asyncio.sleep(0.05)  # now the loop has seen the farewell, too
    assert await pid(pool) not in (first, second)
    await other.close()


async def test_a_caller_that_gives_up_leaves_nothing_of_its_answer_behind(pool: StatementPool) -> None:
    first = await pid(pool)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await pool.run(Statement("SELECT 'late' FROM pg_sleep(10)"))
    assert await pid(pool) != first
    assert await pool.run(ECHO, text="mine") == [("mine",)]


async def test_callers_take_turns(pool: StatementPool) -> None:
    answers = await asyncio.gather(*(pool.run(SLOW_ECHO, text=str(n)) for n in range(50)))
    assert [rows[0][0] for rows in answers] == [str(n) for n in range(50)]


async def count(pool: StatementPool) -> Any:
    [(number,)] = await pool.run(COUNT)
    return number


async def test_a_block_commits_what_was_sent_without_an_answer(pool: StatementPool) -> None:
    async with pool.transaction() as connection:
        assert await connection.value(COUNT) == 0
        connection.send(ADD_BUSINESS, id="biz_1")
        connection.send(ADD_BUSINESS, id="biz_2")
    assert await count(pool) == 2
    async with pool.transaction() as connection:
        connection.send(ADD_BUSINESS, id="biz_3")
        assert await connection.value(COUNT) == 3
    assert await count(pool) == 3


async def test_a_block_that_raises_leaves_nothing(pool: StatementPool) -> None:
    first = await pid(pool)
    for awaits in (False, True):
        with pytest.raises(LookupError):
            async with pool.transaction() as connection:
                connection.send(ADD_BUSINESS, id="biz_1")
                if awaits:
                    assert await connection.value(COUNT) == 1
                raise LookupError
    assert (await count(pool), await pid(pool)) == (0, first)


async def test_a_failure_of_what_was_sent_comes_with_the_next_answer_or_the_commit(pool: StatementPool) -> None:
    first = await pid(pool)
    for awaits in (False, True):
        with pytest.raises(RuleBroken):
            async with pool.transaction() as connection:
                connection.send(ADD_BUSINESS, id="biz_1")
                connection.send(ADD_MEMBER, business_id="nobody")
                connection.send(ADD_BUSINESS, id="biz_2")
                if awaits:
                    await connection.rows(COUNT)
    assert (await count(pool), await pid(pool)) == (0, first)


async def test_a_block_whose_failure_was_caught_does_not_commit(pool: StatementPool) -> None:
    with pytest.raises(Conflict):
        async with pool.transaction() as connection:
            connection.send(ADD_BUSINESS, id="biz_1")
            with pytest.raises(psycopg.Error):
                await connection.rows(Statement("SELECT 1 / 0 FROM pg_sleep(0)"))
    assert await count(pool) == 0


async def test_a_connection_lost_inside_a_block_is_a_conflict(pool: StatementPool, url: str) -> None:
    killer = StatementPool(connector(url, pgbouncer=False), 1)
    with pytest.raises(Conflict):
        async with pool.transaction() as connection:
            connection.send(ADD_BUSINESS, id="biz_1")
            await killer.run(KILL, pid=await connection.value(PID))
            await connection.rows(COUNT)
    assert await count(pool) == 0
    await killer.close()


async def test_a_commit_without_an_answer_is_unavailable_as_nobody_knows(pool: StatementPool) -> None:
    with pytest.raises(Unavailable):
        async with pool.transaction() as connection:
            connection.send(ADD_BUSINESS, id="biz_1")
            await connection.rows(COUNT)
            with socket.socket(fileno=os.dup(connection._wire.socket)) as cut:
                cut.shutdown(socket.SHUT_RDWR)
    assert await count(pool) == 0


async def test_a_server_that_says_farewell_before_commit_has_committed_nothing(pool: StatementPool) -> None:
    with pytest.raises(Conflict):
        async with pool.transaction() as connection:
            connection.send(ADD_BUSINESS, id="biz_1")
            connection.send(Statement("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert await count(pool) == 0


async def test_a_caller_that_gives_up_inside_a_block_leaves_nothing(pool: StatementPool) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), pool.transaction() as connection:
            # Its own: the server goes on with what nobody waits for, and holds this row.
            connection.send(ADD_BUSINESS, id="biz_given_up")
            await connection.rows(Statement("SELECT pg_sleep(10)"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), pool.transaction() as connection:
            connection.send(ADD_BUSINESS, id="biz_1")
            await connection.rows(COUNT)
            await asyncio.sleep(10)
    assert await count(pool) == 0


async def test_what_only_reads_begins_no_transaction(pool: StatementPool) -> None:
    async with pool.transaction() as connection:
        await connection.rows(COUNT)
        assert connection._wire.transaction_status == TransactionStatus.IDLE
        await connection.rows(ECHO, text="SELECT FROM nowhere is no lock")
        connection.send(ADD_BUSINESS, id="biz_1")
        await connection.rows(COUNT)
        assert connection._wire.transaction_status == TransactionStatus.INTRANS


async def test_nobody_waits_for_a_connection_for_ever(pool: StatementPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_WAIT", 0.05)
    async with pool.transaction():
        with pytest.raises(Unavailable):
            await pool.run(PID)
    assert await count(pool) == 0


async def test_several_statements_share_a_round_trip(pool: StatementPool) -> None:
    async with pool.transaction() as connection:
        connection.send(ADD_BUSINESS, id="biz_1")
        assert await connection.all((COUNT, {}), (ECHO, {"text": "a"}), (NOTHING, {})) == [[(1,)], [("a",)], []]


async def test_what_had_to_find_a_row_and_did_not_never_commits(pool: StatementPool) -> None:
    class Missing(Exception):
        pass

    renamed = (
        update(BUSINESS.table)
        .where(BUSINESS.table.c.id == bindparam("own"))
        .values(name="New")
        .returning(BUSINESS.table.c.id)
    )
    rename = Statement(must_find(renamed.cte("renamed")))
    for awaits in (False, True):
        with pytest.raises(Missing):
            async with pool.transaction() as connection:
                connection.send(ADD_BUSINESS, id="biz_1")
                connection.send(rename, or_else=Missing(), own="biz_1")
                connection.send(rename, or_else=Missing(), own="biz_2")
                if awaits:
                    await connection.rows(COUNT)
    assert await count(pool) == 0
    async with pool.transaction() as connection:
        connection.send(ADD_BUSINESS, id="biz_1")
        connection.send(rename, or_else=Missing(), own="biz_1")
    assert await count(pool) == 1


async def test_a_connection_serves_on_after_its_caller_did_something_else(pool: StatementPool) -> None:
    first = await pid(pool)
    for _ in range(20):
        await asyncio.sleep(0.002)
        assert await pid(pool) == first
    async with pool.transaction() as connection:
        for number in range(5):
            connection.send(ADD_BUSINESS, id=f"biz_{number}")
            await connection.rows(COUNT)
            await asyncio.sleep(0.002)
    assert await count(pool) == 5


async def test_a_constraint_that_is_looked_at_last_breaks_what_was_sent_at_once(
    database_url: str, way: tuple[bool, bool]
) -> None:
    pool = StatementPool(connector(database_url, pgbouncer=way[1]), 1)
    defer = Statement("ALTER TABLE members ALTER CONSTRAINT members_business_id_fkey DEFERRABLE INITIALLY DEFERRED")
    await pool.run(defer)
    for awaits in (False, True):
        with pytest.raises(RuleBroken):
            async with pool.transaction() as connection:
                connection.send(ADD_BUSINESS, id="biz_1")
                if awaits:
                    await connection.rows(COUNT)
                connection.send(ADD_MEMBER, business_id="nobody")
    assert await count(pool) == 0
    await pool.close()


async def test_a_session_depends_on_no_default_of_its_server(database_url: str) -> None:
    """A server with LLVM, as distributions have it, compiled plans for 80 ms where a small table has no index."""
    name = conninfo(database_url)["dbname"]
    with psycopg.connect(database_url, autocommit=True) as connection:
        for setting in (
            "jit = on",
            "default_transaction_isolation = serializable",
            "timezone = 'Asia/Kolkata'",
            "datestyle = SQL",
        ):
            connection.execute(f"ALTER DATABASE {name} SET {setting}".encode())
    pool = StatementPool(connector(database_url, pgbouncer=False), 1)
    settings = (
        "SELECT current_setting('jit'), current_setting('transaction_isolation'), now() AT TIME ZONE 'UTC' = now()"
    )
    assert await pool.run(Statement(settings, reads=True)) == [("off", "read committed", True)]
    [(read,)] = await pool.run(Statement("SELECT TIMESTAMPTZ '2025-02-01 12:00Z'", reads=True))
    assert read == datetime(2025, 2, 1, 12, tzinfo=UTC)
    await pool.close()


async def test_single_statements_do_not_wait_behind_transactions(url: str) -> None:
    pool = StatementPool(connector(url, pgbouncer=False), 3)
    done, both = asyncio.Event(), asyncio.Event()
    begun = 0

    async def transaction() -> None:
        nonlocal begun
        async with pool.transaction():
            begun += 1
            if begun == 2:
                both.set()
            await done.wait()

    waiting = [asyncio.create_task(transaction()) for _ in range(5)]
    async with asyncio.timeout(30):
        await both.wait()
        await pid(pool)
        assert begun == 2
        done.set()
        await asyncio.gather(*waiting)
    await pool.close()


async def test_a_caller_whose_time_ends_between_two_parts_of_an_answer_is_told(
    pool: StatementPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wake = StatementConnection._wake

    def late(connection: StatementConnection) -> None:
        wake(connection)
        connection._give_up()

    first = await pid(pool)
    await pool.close()
    monkeypatch.setattr(StatementConnection, "_wake", late)
    with pytest.raises(Unavailable):
        await pool.run(ECHO, text="naira" * 2_000_000)
    monkeypatch.undo()
    assert await pid(pool) != first


async def test_a_connection_over_tcp_notices_by_itself_that_the_other_host_is_gone(url: str) -> None:
    async with by_proxy(url) as (_, proxied):
        connection = await connector(proxied, pgbouncer=False)()
        with socket.socket(fileno=os.dup(connection.fileno())) as tcp:
            options = (
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
                (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
                (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
            )
            assert [tcp.getsockopt(*option) for option in options] == [1, 5, 2, 3, 8000]
        await connection.close()


async def test_a_wait_for_a_connection_is_told(url: str) -> None:
    telemetry.counts.clear()
    pool = StatementPool(connector(url, pgbouncer=False), 1)
    async with pool.transaction():
        waiting = asyncio.create_task(pool.run(PID))
        await asyncio.sleep(0.03)
    await waiting
    await pool.close()
    told = {key: number for key, number in telemetry.counts.items() if key[0].startswith("database_wait_seconds")}
    assert sum(number for key, number in told.items() if key[0] == "database_wait_seconds") == 1
    assert told["database_wait_seconds_sum",] >= 20_000
    telemetry.counts.clear()
