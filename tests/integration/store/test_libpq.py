"""The lines of the hot statements: a whole answer or a known error, whatever becomes of the connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from payagg.adapters.postgres.connections import connector
from payagg.adapters.postgres.errors import ConnectionLost, RuleBroken
from payagg.adapters.postgres.fast_path.libpq import StatementPool
from payagg.application.ports import Unavailable
from payagg.domain.errors import Refusal

pytestmark = pytest.mark.anyio
PID = "SELECT pg_backend_pid()"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}  # a socket is waited for in another way by each


@pytest.fixture(params=[False, True], ids=["prepared", "through PgBouncer"])
async def lines(database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[StatementPool]:
    """One connection, so that each statement meets what the last one left."""
    lines = StatementPool(connector(database_url, pgbouncer=request.param), 1)
    yield lines
    await lines.close()


async def pid(lines: StatementPool) -> Any:
    [(number,)] = await lines.run(PID, ())
    return number


async def test_values_come_back_as_they_went(lines: StatementPool) -> None:
    for _ in range(3):
        rows = await lines.run("SELECT $1::text, $2::text[], $3::bytea[]", ("ẹ", ["a", 'b"'], [b"\x00\xff"]))
        assert rows == [("ẹ", ["a", 'b"'], [b"\x00\xff"])]
        assert await lines.run("SELECT n FROM generate_series(1, 3) n", ()) == [(1,), (2,), (3,)]
        assert await lines.run("SELECT 1 WHERE false", ()) == []


async def test_more_than_a_socket_takes_at_once_goes_and_comes_whole(lines: StatementPool) -> None:
    text = "naira" * 2_000_000
    [(back,)] = await lines.run("SELECT $1::text", (text,))
    assert back == text


async def test_a_refused_statement_leaves_the_connection_in_use(lines: StatementPool) -> None:
    first = await pid(lines)
    with pytest.raises(Refusal):
        await lines.run("SELECT $1::int", ("many",))
    with pytest.raises(Refusal):
        await lines.run("SELECT $1::text", ("a\x00b",))
    with pytest.raises(RuleBroken):
        await lines.run("INSERT INTO members (business_id, subject, role) VALUES ($1, 'ada', 'OWNER')", ("nobody",))
    with pytest.raises(RuntimeError):
        await lines.run("SELECT nothing", ())
    assert await pid(lines) == first


async def test_a_connection_that_ends_under_a_statement_is_told_and_replaced(lines: StatementPool) -> None:
    first = await pid(lines)
    with pytest.raises(ConnectionLost):
        await lines.run("SELECT pg_terminate_backend(pg_backend_pid())", ())
    assert await pid(lines) != first


async def test_a_connection_that_ended_between_statements_is_replaced_unnoticed(
    lines: StatementPool, database_url: str
) -> None:
    first = await pid(lines)
    other = StatementPool(connector(database_url, pgbouncer=False), 1)
    await other.run("SELECT pg_terminate_backend($1, 5000)", (first,))
    second = await pid(lines)
    assert second != first
    await other.run("SELECT pg_terminate_backend($1, 5000)", (second,))
    await asyncio.sleep(0.05)  # now the loop has seen the farewell, too
    assert await pid(lines) not in (first, second)
    await other.close()


async def test_a_caller_that_gives_up_leaves_nothing_of_its_answer_behind(lines: StatementPool) -> None:
    first = await pid(lines)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await lines.run("SELECT 'late' FROM pg_sleep(10)", ())
    assert await pid(lines) != first
    assert await lines.run("SELECT 'mine'", ()) == [("mine",)]


async def test_callers_take_turns(lines: StatementPool) -> None:
    answers = await asyncio.gather(*(lines.run("SELECT $1::text, pg_sleep(0.001)", (str(n),)) for n in range(50)))
    assert [rows[0][0] for rows in answers] == [str(n) for n in range(50)]


async def test_a_server_that_cannot_be_reached_is_unavailable() -> None:
    nowhere = StatementPool(connector("postgresql://payagg@127.0.0.1:1/payagg", pgbouncer=False), 1)
    with pytest.raises(Unavailable):
        await nowhere.run(PID, ())
