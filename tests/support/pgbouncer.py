"""A real PgBouncer in transaction mode before a database of a test."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.machine import program
from tests.support.ports import free_port
from tests.support.receivers import listening


@asynccontextmanager
async def a_pgbouncer(database_url: str, folder: Path, connections: int) -> AsyncIterator[str]:
    """The URL of that database through a PgBouncer that holds at most so many connections to it."""
    binary = program("pgbouncer")
    directory = parse_qs(urlsplit(database_url).query)["host"][0]
    name = urlsplit(database_url).path.lstrip("/")

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """PgBouncer gives up root, and the server's socket lies in a folder that only its own account may enter."""
        try:
            from_server, to_server = await asyncio.open_unix_connection(f"{directory}/.s.PGSQL.5432")
        except OSError:  # Postgres is down
            writer.close()
            return
        await asyncio.gather(_pipe(reader, to_server), _pipe(from_server, writer))

    async with listening(relay) as server_port:
        port = free_port()
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": connections,
            "max_client_conn": 500,
            "server_login_retry": 1,
            **({"user": "nobody"} if os.geteuid() == 0 else {}),
        }
        target = f"{name} = host=127.0.0.1 port={server_port} user=payagg"
        lines = ["[databases]", target, "[pgbouncer]", *(f"{key} = {value}" for key, value in settings.items())]
        file = folder / "pgbouncer.ini"
        file.write_text("\n".join(lines))
        with (folder / "pgbouncer.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(binary, str(file), stdout=log, stderr=log)
        try:
            await _until_open(port)
            yield f"postgresql://payagg@127.0.0.1:{port}/{name}?sslmode=disable"
        finally:
            process.terminate()
            await process.wait()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:  # one end was killed: so is the other
        pass
    writer.close()


async def _until_open(port: int) -> None:
    for _ in range(500):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    raise AssertionError("PgBouncer did not start")
