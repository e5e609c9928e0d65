"""What the tests of the Postgres store share: many payments, callers of one moment, and ways to lose a connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.ports import KeyHolder
from payagg.domain.payment import Payment
from payagg.domain.values import make_reference
from tests.support.builders import NOW, a_payment


def numbered(number: int, **fields: Any) -> Payment:
    return a_payment(reference=make_reference("PAY", NOW, number), **fields)


async def together(store: PostgresStore, *payments: Payment, remembered: KeyHolder | None = None) -> list[Any]:
    """The answers to callers that ask at one moment, and so share a statement."""
    return await asyncio.gather(
        *(store.add_payment(payment, remembered) for payment in payments), return_exceptions=True
    )


async def kill_others(database_url: str) -> None:
    """Ends every other client's connection to the database, and returns when they are gone."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


async def count(database_url: str, table: str) -> int:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        row = await (await connection.execute(f"SELECT count(*) FROM {table}".encode())).fetchone()
        assert row is not None
        return int(row[0])


@asynccontextmanager
async def lossy(database_url: str, after: bytes) -> AsyncIterator[str]:
    """A way to the database that once passes on a message holding `after`, waits for the answer and loses it."""
    socket = parse_qs(urlsplit(database_url).query)["host"][0]
    armed = True

    async def serve(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        nonlocal armed
        server, questions = await asyncio.open_unix_connection(f"{socket}/.s.PGSQL.5432")
        is_lost = False

        async def back() -> None:
            while (answer := await server.read(65536)) and not is_lost:
                answers.write(answer)
            answers.close()

        returning = asyncio.create_task(back())
        while question := await client.read(65536):
            if armed and after in question:
                armed, is_lost = False, True
            questions.write(question)
        questions.close()
        await returning

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    database = urlsplit(database_url).path
    try:
        yield f"postgresql://payagg@{host}:{port}{database}?sslmode=disable&gssencmode=disable"
    finally:
        listener.close()


@dataclass
class SilentRoute:
    """A way to the database over TCP that swallows everything while `is_silent`, without hanging up."""

    url: str
    is_silent: bool = False


@asynccontextmanager
async def silent_route(database_url: str) -> AsyncIterator[SilentRoute]:
    socket = parse_qs(urlsplit(database_url).query)["host"][0]
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not route.is_silent:
                writer.write(data)
        writer.close()

    async def serve(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, questions = await asyncio.open_unix_connection(f"{socket}/.s.PGSQL.5432")
        for reader, writer in ((client, questions), (server, answers)):
            tasks.add(asyncio.create_task(pass_on(reader, writer)))

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    path = urlsplit(database_url).path
    route = SilentRoute(f"postgresql://payagg@{host}:{port}{path}?sslmode=disable&gssencmode=disable")
    try:
        yield route
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
